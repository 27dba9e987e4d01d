#include "engine/engines.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "engine/cpu/engine.h"
#include "engine/cpu/speed.h"
#include "engine/cuda/cards.h"
#include "engine/ref/engine.h"
#include "flat/cpu/host.h"

namespace trireme {
namespace {

std::string WhyNotOnCpu(Precision precision) {
  if (precision == Precision::kTf32) return "processors have no tf32; use f32 or bf16-or-f32";
  if (precision == Precision::kFp16) {
    return "device cpu does not compute in fp16; use bf16-or-f32";
  }
  const bool can = precision == Precision::kF32 || cpu::FindMatrixUnit();
  return can ? "" : cpu::WhyNoMatrixUnit();
}

Backend MakeCpu(Precision precision, const EngineOptions& options, const BackendNeeds& needs) {
  const bool bf16 = precision == Precision::kBf16;
  Backend backend;
  backend.team = std::make_unique<Team>(needs.threads);
  backend.device = std::make_unique<HostDevice>(backend.team.get());
  backend.engine = std::make_unique<CpuEngine>(*backend.device, needs.threads, options.winograd,
                                               bf16 ? cpu::FindMatrixUnit() : nullptr);
  return backend;
}

Ceiling CeilingOfCpu(int threads, std::optional<int>) {
  const auto team = std::make_shared<Team>(threads);
  const auto flops = [&](const cpu::MatrixUnit* unit) {
    return [team, unit](double seconds) { return cpu::MeasureMultiplyAdds(*team, seconds, unit); };
  };
  Ceiling ceiling;
  ceiling.multipliers.push_back({Precision::kF32, "vectors", flops(nullptr)});
  for (const cpu::MatrixUnit* unit : cpu::AllMatrixUnits()) {
    if (!unit->missing().empty()) continue;
    ceiling.multipliers.push_back({Precision::kBf16, std::string(unit->name), flops(unit)});
  }
  ceiling.copy = [team](double seconds) { return cpu::MeasureCopy(*team, seconds); };
  return ceiling;
}

std::vector<std::string> TargetsOfRef() { return {std::string(RefEngine().target())}; }

std::string WhyNotOnRef(Precision precision) {
  const bool can = precision == Precision::kF32 || precision == Precision::kFp16;
  return can ? "" : "device ref computes in float64, and rounds only to fp16";
}

Backend MakeRef(Precision precision, const EngineOptions&, const BackendNeeds&) {
  return {.engine = std::make_unique<RefEngine>(std::vector<Fusion>(), precision)};
}

Backend MakeCuda(Precision precision, const EngineOptions& options, const BackendNeeds& needs) {
  cuda::Made made = cuda::Make(precision, options, needs.number, needs.place);
  return {.device = std::move(made.device),
          .engine = std::move(made.engine),
          .groups = std::move(made.groups)};
}

Ceiling CeilingOfCuda(int, std::optional<int> number) {
  const auto ceilings = std::make_shared<const cuda::Ceilings>(number);
  Ceiling ceiling;
  for (const Precision precision : kPrecisions) {
    ceiling.multipliers.push_back(
        {precision, precision == Precision::kF32 ? "cuBLASLt" : "cuBLASLt, tensor cores",
         [=](double seconds) { return ceilings->Flops(precision, seconds); }});
  }
  ceiling.copy = [=](double seconds) { return ceilings->CopiedBytes(seconds); };
  return ceiling;
}

constexpr EngineKind kEngines[] = {
    {.name = "cpu",
     .help = "SIMD instructions of the processor",
     .targets = cpu::Targets,
     .built = cpu::BuiltTargets,
     .why_not = WhyNotOnCpu,
     .make = MakeCpu,
     .ceiling = CeilingOfCpu},
    {.name = "ref",
     .help = "plain float64 loops, slow; the reference for the others",
     .targets = TargetsOfRef,
     .why_not = WhyNotOnRef,
     .make = MakeRef},
    {.name = "cuda",
     .help = "NVIDIA cards",
     .host_memory = false,
     .numbered = true,
     .targets = cuda::Targets,
     .why_not = cuda::WhyNot,
     .make = MakeCuda,
     .ceiling = CeilingOfCuda,
     .missing = cuda::Missing,
     .absent = cuda::Absent,
     .details = cuda::Details},
};

// NAME or NAME:K. `why_not` is said what is wrong where it is none.
std::optional<DeviceChoice> ReadDevice(std::string_view text, std::string& why_not) {
  if (text == kAutoDevice) return AutoDevice(why_not);
  const size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const auto kind = std::ranges::find(kEngines, name, &EngineKind::name);
  if (kind == std::end(kEngines)) {
    std::vector<std::string> names;
    for (const EngineKind& each : kEngines) names.emplace_back(each.name);
    why_not = fmt::format("there is no engine \"{}\"; choose from {}{}", name,
                          fmt::join(DeviceWords(), ", "), DidYouMean(std::string(name), names));
    return std::nullopt;
  }
  if (colon == text.npos) return DeviceChoice{&*kind};
  if (!kind->numbered) {
    why_not =
        fmt::format("the devices of engine {0} have no numbers; say {0}, not {1}", name, text);
    return std::nullopt;
  }
  const auto number = ParseNumber<int>(text.substr(colon + 1));
  if (number && *number >= 0) return DeviceChoice{&*kind, *number};
  why_not = fmt::format("{} is no device; {}:0 is the first of its engine", text, name);
  return std::nullopt;
}

}  // namespace

const Ceiling::Measure& Ceiling::flops(Precision precision) const {
  const auto used = std::ranges::find(multipliers, precision, &Multiplier::precision);
  TRIREME_ASSERT(used != multipliers.end());  // why_not says so before
  return used->flops;
}

std::span<const EngineKind> EngineKinds() { return kEngines; }

const EngineKind& FindEngine(std::string_view name) {
  const DeviceChoice choice = FindDevice(name);
  if (choice.number) throw UsageError("{} is a device; its engine is {}", name, choice.kind->name);
  return *choice.kind;
}

const EngineKind& HostEngine() {
  return *std::ranges::find(kEngines, true, &EngineKind::host_memory);
}

std::string DeviceChoice::Text() const {
  return std::string(kind->name) + (number ? fmt::format(":{}", *number) : "");
}

DeviceChoice FindDevice(std::string_view text) {
  std::string why_not;
  if (const auto choice = ReadDevice(text, why_not)) return *choice;
  throw UsageError("{}", why_not);
}

DeviceChoice AutoDevice(std::string& why, bool asked) {
  why.clear();
  for (const EngineKind& kind : kEngines) {
    if (kind.host_memory) continue;
    const std::string missing = kind.Missing();
    if (missing.empty()) return {&kind};
    if (!asked && kind.absent && kind.absent()) continue;
    why += (why.empty() ? "" : "; ") + missing;
  }
  return {&HostEngine()};
}

bool IsDevice(std::string_view text) {
  if (text == kAutoDevice) return true;  // nobody looks for devices to read a recipe
  std::string why_not;
  return ReadDevice(text, why_not).has_value();
}

std::vector<std::string> DeviceWords() {
  std::vector<std::string> words = {std::string(kAutoDevice)};
  for (const EngineKind& kind : kEngines) {
    words.emplace_back(kind.name);
    if (kind.numbered) words.push_back(std::string(kind.name) + ":K");
  }
  return words;
}

void RequireDevice(const DeviceChoice& choice) {
  const std::string missing = choice.kind->Missing(choice.number);
  if (!missing.empty()) throw Error("trainer.device = \"{}\": {}", choice.Text(), missing);
}

DeviceChoice DeviceHere(const DeviceChoice& wanted, std::string& why) {
  why = wanted.kind->Missing(wanted.number);
  if (why.empty()) return wanted;
  if (wanted.number && wanted.kind->Missing().empty()) return {wanted.kind};
  return {&HostEngine()};
}

Precision ResolvePrecision(const EngineKind& kind, std::string_view wanted) {
  const bool falls_back = wanted == "bf16-or-f32";
  Precision precision = Precision::kBf16;
  for (const Precision each : kPrecisions) {
    if (NameOf(each) == wanted) precision = each;
  }
  const std::string why_not = kind.why_not(precision);
  if (why_not.empty()) return precision;
  if (falls_back) return Precision::kF32;
  throw UsageError("trainer.precision = \"{}\": {}{}", wanted, why_not,
                   precision == Precision::kBf16 ? "; \"bf16-or-f32\" falls back to float32" : "");
}

Precision PrecisionHere(const EngineKind& kind, std::string_view wanted) {
  try {
    return ResolvePrecision(kind, wanted);
  } catch (const UsageError&) {
    return Precision::kF32;
  }
}

}  // namespace trireme
