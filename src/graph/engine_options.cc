#include "graph/engine_options.h"

namespace trireme {

std::string_view NameOf(Precision precision) {
  switch (precision) {
    case Precision::kF32:
      return "f32";
    case Precision::kTf32:
      return "tf32";
    case Precision::kBf16:
      return "bf16";
    case Precision::kFp16:
      return "fp16";
  }
  return "";
}

void Describe(OptionTable<EngineOptions>& t) {
  using enum Binds;
  t.Add("winograd", &EngineOptions::winograd, OneOf({"off", "f2", "f4", "auto"}), kJob,
        "3x3 convolutions with fewer multiplications (Winograd), 2x2 or 4x4 outputs at a time: "
        "\"f2\" and \"f4\" wherever possible, \"auto\" where they are probably faster; \"off\": "
        "none");
  t.Add("check", &EngineOptions::check, Any(), kNothing,
        "on a card: wait for each operation, so that an error names the operation that caused it; "
        "slow");
  t.Add(
      "measure", &EngineOptions::measure, Any(), kNothing,
      "on a card: measure how each product is computed fastest, and keep it in a cache; false, and "
      "with trainer.deterministic: the first way that the libraries advise whose sums have one "
      "order");
  t.Add("memory_mb", &EngineOptions::memory_mb, AtLeast(0), kLocal,
        "on a card: the most memory that a rank may take, in MB; 0: all there is");
  t.Add("samples_mb", &EngineOptions::samples_mb, AtLeast(0) || OneOf({"auto"}), kLocal,
        "on a card: samples of bytes (idx, cifar) that take at most so many MB lie there during "
        "training, each part of the data for itself; auto: a quarter of the memory that is free "
        "when training starts, divided by the ranks of the machine; 0: they travel with each step");
}

}  // namespace trireme
