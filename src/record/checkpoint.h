#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/state_io.h"
#include "record/safetensors.h"

namespace trireme {

// The folder `checkpoints` of a run:
//
//   step-00001234/{model.safetensors, optimizer.safetensors, state.json}
//   latest -> step-00001234
//   best -> step-00000800, where an evaluation found the best accuracy so far
//
// A step-* folder appears complete or not at all, and the links are switched after it is on the
// disk: whenever the process is killed or the disk is full, the last good checkpoint is there.

// One checkpoint on its way to the disk. Destroyed without Commit() it leaves nothing.
class CheckpointWriter {
 public:
  virtual ~CheckpointWriter() = default;
  virtual StateWriter& model() = 0;  // tensors under the names that other programs know
  virtual StateWriter& state() = 0;  // optimizer, strategy, trainer; values are common to both
  // The new folder. `best` names the checkpoint of step `best` then, if that is given and there;
  // other ones that are older than `keep` are gone.
  virtual std::string Commit(std::optional<int64_t> best = {}) = 0;
};

// The writing side; one per run (RunDirectory holds the lock). Removes what a killed writer left.
class CheckpointStore {
 public:
  // `best`: what the link is to name. The run knows: a kill may have left the one before, and a run
  // that goes back to an older checkpoint also goes back to the best of that time.
  CheckpointStore(std::string directory, int keep, std::optional<int64_t> best = {});
  // `metadata` goes into model.safetensors.
  std::unique_ptr<CheckpointWriter> Begin(int64_t step, const Metadata& metadata = {});
  void SetBest(int64_t step);   // to a checkpoint that is there
  void ReturnTo(int64_t step);  // `latest` names it, and later ones are gone
  std::string FolderOf(int64_t step) const;

 private:
  std::string directory_;
  int keep_;
};

struct CheckpointFiles {
  std::string state, model, optimizer;  // paths
};

// A complete checkpoint whose files are those that were written (by their SHA-256).
class Checkpoint {
 public:
  // Throws, and says which file is damaged or missing.
  explicit Checkpoint(const std::string& folder);
  explicit Checkpoint(CheckpointFiles files);
  ~Checkpoint();
  Checkpoint(Checkpoint&&) noexcept;

  const CheckpointFiles& files() const { return files_; }
  int64_t step() const { return step_; }
  const StateReader& model() const { return *model_; }
  const StateReader& state() const { return *state_; }

 private:
  CheckpointFiles files_;
  int64_t step_ = 0;
  std::unique_ptr<StateReader> model_, state_;
};

struct FoundCheckpoint {
  Checkpoint checkpoint;
  std::string warning;  // not empty: a newer one is damaged, and in which way
};

bool HasCheckpoint(const std::string& directory);  // any, good or damaged

// What `latest` names or, if that is damaged, the newest good one. Nothing if there are none at
// all; an Error if all are damaged. Safe while a run writes into the folder.
std::optional<FoundCheckpoint> OpenLatestCheckpoint(const std::string& directory);

// One that a user asks for: "last" (as above), "best", or a step. Nothing if there are none at all;
// a UsageError that names those there are if it is none of them.
std::optional<FoundCheckpoint> OpenCheckpoint(const std::string& directory,
                                              const std::string& which);
bool HasBestCheckpoint(const std::string& directory);

}  // namespace trireme
