#include "engine/options.h"

namespace trireme {

void Describe(OptionTable<EngineOptions>& t) {
  using enum Binds;
  t.Add("winograd", &EngineOptions::winograd, OneOf({"off", "f2", "f4", "auto"}), kJob,
        "3x3 convolutions with fewer multiplications (Winograd), 2x2 or 4x4 outputs at a time: "
        "\"f2\" and \"f4\" wherever possible, \"auto\" where they are probably faster; \"off\": "
        "none");
}

}  // namespace trireme
