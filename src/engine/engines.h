#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/team.h"
#include "engine/options.h"
#include "graph/engine.h"

// The engines that trainer.device names: a row each. Whoever wants to know something of an engine
// asks its row; nobody else knows their names.

namespace trireme {

// What one rank computes with; members stand on those before them, which an engine may not need.
struct Backend {
  std::unique_ptr<Team> team;
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
};

// Makes the backend of one rank. Tests hand in their own.
using MakeBackend = std::function<Backend(int threads)>;

enum class Precision { kF32, kBf16 };
std::string_view NameOf(Precision precision);  // f32, bf16

// What an engine's hardware does at best, measured: shares of peak refer to it. Each measurement
// takes about `seconds` and uses all of the threads that the ceiling was made for.
struct Ceiling {
  using Measure = std::function<double(double seconds)>;
  struct Multiplier {
    Precision precision;
    std::string instructions;
    Measure flops;  // multiplications and additions per second, without touching memory
  };
  std::vector<Multiplier> multipliers;  // the first of a precision is the one that is used
  Measure copy;                         // bytes copied per second, from memory to memory

  const Measure& flops(Precision precision) const;  // of the one that is used
};

struct EngineKind {
  std::string_view name;  // trainer.device
  std::string_view help;
  // What this machine has for it, best first: that one computes.
  std::vector<std::string> (*targets)();
  // Empty: it can compute in this precision on this machine.
  std::string (*why_not)(Precision precision);
  Backend (*make)(Precision precision, const EngineOptions& options, int threads);
  Ceiling (*ceiling)(int threads);  // null: there is nothing to compare with
};

std::span<const EngineKind> EngineKinds();
const EngineKind& FindEngine(std::string_view name);  // UsageError for an unknown name

// trainer.precision ("f32", "bf16", or "bf16-or-f32": what there is) on this engine. UsageError
// where it cannot.
Precision ResolvePrecision(const EngineKind& kind, std::string_view wanted);

}  // namespace trireme
