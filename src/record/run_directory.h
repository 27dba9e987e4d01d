#pragma once
#include <cstdint>
#include <ctime>
#include <optional>
#include <string>

#include "base/files.h"
#include "record/json.h"
#include "record/run_lock.h"

namespace trireme {

// runs/NAME, held by the one process that trains: a lock keeps others out until the object is gone
// or the process dead. One thread. Reading a run (evaluation, prediction) needs no RunDirectory.
//
//   config.toml    written first: a run that has it can be resumed
//   metrics.jsonl  one JSON object per line
//   summary.json   the end result
//   mistakes.json  test samples of which the result is wrong, with their pictures
//   starts.jsonl   a line for each time that it was started or resumed: command, machine, version;
//                  and {"end": ...} where a signal stopped it
//   checkpoints/   see checkpoint.h
class RunDirectory {
 public:
  // A new run. A folder that holds a run, or anything else, is refused.
  static RunDirectory Create(const std::string& path, const std::string& config);
  // A new run in a folder of its own: PARENT/STEM-20260131-104400, with a number if that is taken.
  static RunDirectory CreateNamed(const std::string& parent, const std::string& stem,
                                  const std::string& config, std::time_t now = std::time(nullptr));
  static RunDirectory Resume(const std::string& path);

  const std::string& path() const { return path_; }
  std::string checkpoints() const { return path_ + "/checkpoints"; }
  void WriteConfig(const std::string& config);  // a resumed run goes further than it was to

  // Throws if the folder was removed, moved or replaced. What writes looks first, so that nothing
  // is written elsewhere.
  void CheckThere() const;

  // Out of the process's hands when it returns. Comes before the checkpoint of the same step, so
  // that the line is there when the run is resumed.
  void AppendMetrics(const Json& line);
  void SyncMetrics();

  void WriteSummary(const Json& summary);
  void WriteMistakes(const Json& mistakes);
  void AppendStart(const Json& line);  // unless it is the last one there
  void AppendStop(int signal, int64_t step);
  std::string started_at() const;  // for the first time; empty where no file says it
  Json last_start() const;         // what the last AppendStart told; null where no file says it
  bool resumed() const { return resumed_; }

  // After a resume at `step`: lines of later steps, and one that a kill cut short, are dropped, so
  // that nothing is counted twice.
  void DropMetricsAfter(int64_t step);

 private:
  RunDirectory(std::string path, RunLock lock);
  void OpenMetrics();

  std::string path_;
  RunLock lock_;
  bool resumed_ = false;
  std::optional<OutputFile> metrics_;  // always open
};

// The resolved recipe, for whoever only reads the run; a UsageError unless `path` holds one.
std::string ReadRunConfig(const std::string& path);

}  // namespace trireme
