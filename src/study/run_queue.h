#pragma once
#include <cstddef>
#include <functional>
#include <string>

namespace trireme {

// Runs that a study wants, one after another or several at once. What is done is not run again.
struct RunQueue {
  size_t count = 0;
  std::function<bool(size_t run)> done;
  // Runs it and says what became of it, for people. An exception ends the study when the runs that
  // have begun are over. Of so many slots, one for each run that goes on, it has number `slot`.
  std::function<std::string(size_t run, int slot, int slots)> run;
  std::function<size_t(size_t run)> kind;  // those of one kind take equally long
  std::function<int()> stopped;            // an exit code if somebody wants to stop, else 0
  std::function<void(const std::string& line)> say;
  std::function<bool()> enough = {};  // no further run is begun, although some are left
  int parallel = 1;                   // on threads, of which each waits for its run
};

// 0, or the code with which it was stopped.
int RunQueued(const RunQueue& queue);

// The runs of a killed study take a moment to go: waits until nobody holds the run's lock. Error if
// that takes long.
void AwaitFree(const std::string& folder);
// Removes what an interrupted run left.
void ClearRun(const std::string& folder);

}  // namespace trireme
