#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/team.h"
#include "flat/device_group.h"
#include "graph/engine.h"
#include "graph/engine_options.h"

// The engines that trainer.device names: a row each. Whoever wants to know something of an engine
// asks its row; nobody else knows their names.

namespace trireme {

// What one rank computes with; members stand on those before them, which an engine may not need.
struct Backend {
  std::unique_ptr<Team> team;
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<DeviceGroups> groups;  // of its device with those of other ranks, if it has any
};

// For whom a backend is made.
struct BackendNeeds {
  int threads = 1;
  // The device that the recipe names (trainer.device = "NAME:K"). Without one the rank's place
  // chooses: its number among the ranks of its host that train.
  std::optional<int> number = {};
  int place = 0;
  bool trains = true;  // false: a server's rank, which computes no shard and takes no card
};

// Makes the backend of one rank. Tests hand in their own.
using MakeBackend = std::function<Backend(const BackendNeeds&)>;

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
  bool host_memory = true;  // the host reads and writes its slices where they lie
  bool numbered = false;    // a machine may have several: trainer.device = "NAME:K" takes that one
  // What this machine has for it, best first: that one computes. Empty: it is missing.
  std::vector<std::string> (*targets)() = nullptr;
  // The instruction sets that the program holds code for, best first. Null: it has no choice.
  std::vector<std::string> (*built)() = nullptr;
  // Empty: it can compute in this precision on this machine, if it is not missing.
  std::string (*why_not)(Precision precision) = nullptr;
  Backend (*make)(Precision precision, const EngineOptions& options,
                  const BackendNeeds& needs) = nullptr;
  // Of the device of this number where they have numbers. Null: there is nothing to compare with.
  Ceiling (*ceiling)(int threads, std::optional<int> number) = nullptr;
  // What this machine lacks to compute with it, or with its device of this number, and what to do:
  // one line. Empty: nothing. Null: no machine lacks it.
  std::string (*missing)(std::optional<int> number) = nullptr;
  // Nothing is broken: it is missing because this machine has no such device, or the program no
  // plugin for it. Null: never so.
  bool (*absent)() = nullptr;
  // Where it has devices of its own: a line for each in order, then one about what they share.
  std::vector<std::string> (*details)() = nullptr;

  std::string Missing(std::optional<int> number = {}) const {
    return missing ? missing(number) : "";
  }
};

std::span<const EngineKind> EngineKinds();
const EngineKind& FindEngine(std::string_view name);  // UsageError for an unknown name
const EngineKind& HostEngine();  // the first row whose memory is the host's: every machine has it

// What trainer.device says: an engine, and which of its devices if that is said.
struct DeviceChoice {
  const EngineKind* kind;
  std::optional<int> number = {};

  std::string Text() const;  // NAME or NAME:K
};
inline constexpr std::string_view kAutoDevice = "auto";
DeviceChoice FindDevice(std::string_view text);  // UsageError; "auto": AutoDevice
bool IsDevice(std::string_view text);            // FindDevice takes it
std::vector<std::string> DeviceWords();          // all that it takes, "NAME:K" for any number

// The first engine with devices of its own that this machine does not lack, else the host's. `why`
// is then said what is missing; where nobody `asked` for such devices, only what is broken.
DeviceChoice AutoDevice(std::string& why, bool asked = true);

// Throws Error where this machine lacks it.
void RequireDevice(const DeviceChoice& choice);

// For weights that any device can use: `wanted`, or where this machine lacks it another device of
// its engine, or the host's engine. `why` is then said what it lacks.
DeviceChoice DeviceHere(const DeviceChoice& wanted, std::string& why);

// trainer.precision ("f32", "tf32", "bf16", "fp16", or "bf16-or-f32": what there is) on this
// engine.
// UsageError where it cannot.
Precision ResolvePrecision(const EngineKind& kind, std::string_view wanted);
// Likewise for a trained model: float32 where it cannot. Its weights are float32 in any case.
Precision PrecisionHere(const EngineKind& kind, std::string_view wanted);

}  // namespace trireme
