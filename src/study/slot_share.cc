#include "study/slot_share.h"

namespace trireme {
namespace {

std::vector<std::string> ThreadWords(const Recipe& recipe, int slots) {
  if (slots <= 1 || !recipe.trainer.threads.is_word()) return {};
  const int sharing = slots * recipe.transport.ranks;
  return {"--threads", std::to_string(CountThreads(recipe.trainer, sharing))};
}

std::vector<int> CpusOf(int slot, int slots) {
  if (slots <= 1) return {};
  return ShareOf(OrderByCore(ReadCoreFacts().affinity), slot, slots);
}

}  // namespace

SlotShare::SlotShare(const Recipe& recipe, int slot, int slots)
    : words_(ThreadWords(recipe, slots)), pinned_(CpusOf(slot, slots)) {}

}  // namespace trireme
