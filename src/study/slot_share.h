#pragma once
#include <string>
#include <vector>

#include "base/cores.h"
#include "recipe/recipe.h"

namespace trireme {

// What one of several runs of a study that train at the same time has of this machine: its share of
// the processors, which a child of this thread inherits while the object lives, and as many
// threads.
class SlotShare {
 public:
  SlotShare(const Recipe& recipe, int slot, int slots);

  // For the run's command line. Empty where it has the machine to itself, or the recipe says how
  // many threads compute.
  const std::vector<std::string>& words() const { return words_; }

 private:
  std::vector<std::string> words_;  // counted before the thread is pinned to a share
  PinnedThread pinned_;
};

}  // namespace trireme
