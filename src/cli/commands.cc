#include "cli/commands.h"

namespace trireme {

extern const Command kDoctor;

std::span<const Command* const> AllCommands() {
  static constexpr const Command* kAll[] = {
      &kDoctor,
  };
  return kAll;
}

}  // namespace trireme
