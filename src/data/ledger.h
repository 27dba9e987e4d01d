#pragma once
#include <cstdint>
#include <string>

#include "base/files.h"
#include "data/feed.h"

namespace trireme {

// What one worker trained on, as a file: DIRECTORY/worker-2.csv with the columns step, epoch,
// position, sample. A resumed run goes on in the same file. One thread.
class Ledger {
 public:
  Ledger(const std::string& directory, int worker);
  void Note(int64_t step, const Positions& range, const Order& order);  // out of our hands after

 private:
  OutputFile file_;
};

}  // namespace trireme
