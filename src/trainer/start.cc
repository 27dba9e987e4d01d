#include "trainer/start.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/files.h"
#include "model/model_file.h"
#include "record/checkpoint_folder.h"
#include "strategy/step/tags.h"
#include "transport/collective/broadcast.h"

namespace trireme {
namespace {

constexpr size_t kMostBytes = size_t{64} << 30;  // of a file

std::string SamplesText(const std::vector<int64_t>& samples) {
  return PartsText(samples[0], samples.size() > 2 ? samples[2] : 0, samples[1]);
}

// Positions, labels and what was held out mean something else in other data.
void CheckData(const ModelCard& then, const ModelCard& now) {
  constexpr char kOther[] = "the data differ from those that the run began with";
  constexpr char kWay[] = "start a new run from its weights with --init";
  if (then.task() != now.task()) {
    throw Error("{}: they were for {} and are now for {}; {}", kOther, NameOf(then.task()),
                NameOf(now.task()), kWay);
  }
  for (size_t i = 0; i < std::max(then.classes.size(), now.classes.size()); ++i) {
    const auto name = [i](const ModelCard& card) {
      return i < card.classes.size() ? "\"" + card.classes[i] + "\"" : "missing";
    };
    if (name(then) == name(now)) continue;
    throw Error("{}: class {} was {} and is now {}; {}", kOther, i, name(then), name(now), kWay);
  }
  const size_t columns = std::min(then.columns.values.size(), now.columns.values.size());
  for (size_t i = 0; i < columns; ++i) {  // none of a file without header
    const std::string &was = then.columns.values[i], &is = now.columns.values[i];
    if (was == is) continue;
    throw Error("{}: column \"{}\" is where \"{}\" was; {}", kOther, is, was, kWay);
  }
  if (then.samples.size() >= 2 && then.samples != now.samples) {
    throw Error("{}: the samples were {} and are now {}; {}", kOther, SamplesText(then.samples),
                SamplesText(now.samples), kWay);
  }
  if (then.codes.empty() || then.codes == now.codes) return;
  throw Error("{}: a column holds other texts, or another median; {}", kOther, kWay);
}

// The run's state says which checkpoint is its best; the disk, whether that is there.
void CheckBest(const Job& job, const RunDirectory& directory, TrainState& at, const Log& log) {
  if (at.best_step < 0 || at.best_step == at.step || !job.recipe.trainer.KeepsBest()) return;
  try {
    const Checkpoint best(directory.checkpoints() + "/" + StepName(at.best_step));
  } catch (const Error& error) {
    log.Warn("resume", "the best checkpoint is lost ({}); keeping the best one from here on",
             error.what());
    at.ForgetBest();
  }
}

// A copy of root's file. It has no name: what a killed rank has must not stay.
NamelessFile ShareFile(Group& group, int root, const std::string& path) {
  std::vector<std::byte> bytes;
  if (group.rank() == root) {
    const std::string content = ReadFile(path, kMostBytes);
    bytes.resize(content.size());
    std::memcpy(bytes.data(), content.data(), content.size());
  }
  BroadcastBytes(group, kTagStart, root, bytes, kMostBytes);
  return NamelessFile({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace

Start OpenStart(const Job& job, Checkpoint checkpoint) {
  CheckData(ModelCard::Load(checkpoint.state()), ModelCardOf(job));
  Start start;
  start.loaded = job.initial_state;
  ReadModel(job.graph, job.layout, checkpoint.model(), start.loaded);
  start.at = TrainState::Load(checkpoint.state());
  start.checkpoint.emplace(std::move(checkpoint));
  start.state = start.loaded;
  return start;
}

Start FindStart(const Job& job, const RunDirectory& directory, const Log& log) {
  auto found = OpenLatestCheckpoint(directory.checkpoints());
  if (!found) {
    if (directory.resumed()) {
      log.Warn("resume", "{} has no checkpoint; starting at epoch 1 and discarding its old metrics",
               directory.path());
    }
    Start start;
    start.state = job.initial_state;
    return start;
  }
  if (!found->warning.empty()) log.Warn("resume", "{}", found->warning);
  Start start = OpenStart(job, std::move(found->checkpoint));
  CheckBest(job, directory, start.at, log);
  return start;
}

Start ShareStart(Group& group, int root, const Job& job, const Start* own) {
  const bool is_root = group.rank() == root;
  struct {
    int64_t step = -1, best_step = -1;
  } found;
  if (is_root && own->checkpoint) found = {own->at.step, own->at.best_step};
  Broadcast(group, kTagStart, root, std::as_writable_bytes(std::span(&found, 1)));
  if (found.step < 0) {
    Start start;
    const std::span<const float> state = is_root ? own->state : std::span(job.initial_state);
    start.loaded.assign(state.begin(), state.end());
    Broadcast(group, kTagStart, root, std::as_writable_bytes(std::span(start.loaded)));
    start.state = start.loaded;
    return start;
  }
  const CheckpointFiles files = is_root ? own->checkpoint->files() : CheckpointFiles{};
  const NamelessFile state = ShareFile(group, root, files.state);
  const NamelessFile model = ShareFile(group, root, files.model);
  const NamelessFile optimizer = ShareFile(group, root, files.optimizer);
  Start start = OpenStart(job, Checkpoint({state.path(), model.path(), optimizer.path()}));
  if (start.at.best_step != found.best_step) start.at.ForgetBest();
  return start;
}

}  // namespace trireme
