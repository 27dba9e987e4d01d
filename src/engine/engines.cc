#include "engine/engines.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"
#include "engine/cpu/engine.h"
#include "engine/cpu/speed.h"
#include "engine/ref/engine.h"
#include "flat/cpu/host.h"

namespace trireme {
namespace {

std::string WhyNotOnCpu(Precision precision) {
  const bool can = precision == Precision::kF32 || cpu::FindMatrixUnit();
  return can ? "" : cpu::WhyNoMatrixUnit();
}

Backend MakeCpu(Precision precision, const EngineOptions& options, int threads) {
  const bool bf16 = precision == Precision::kBf16;
  Backend backend;
  backend.team = std::make_unique<Team>(threads);
  backend.device = std::make_unique<HostDevice>(backend.team.get());
  backend.engine = std::make_unique<CpuEngine>(*backend.device, threads, options.winograd,
                                               bf16 ? cpu::FindMatrixUnit() : nullptr);
  return backend;
}

Ceiling CeilingOfCpu(int threads) {
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
  return precision == Precision::kF32 ? "" : "device ref computes in float64";
}

Backend MakeRef(Precision, const EngineOptions&, int) {
  return {.engine = std::make_unique<RefEngine>()};
}

constexpr EngineKind kEngines[] = {
    {"cpu", "SIMD instructions of the processor", cpu::Targets, WhyNotOnCpu, MakeCpu, CeilingOfCpu},
    {"ref", "plain float64 loops, slow; the reference for the others", TargetsOfRef, WhyNotOnRef,
     MakeRef, nullptr},
};

}  // namespace

std::string_view NameOf(Precision precision) {
  return precision == Precision::kBf16 ? "bf16" : "f32";
}

const Ceiling::Measure& Ceiling::flops(Precision precision) const {
  const auto used = std::ranges::find(multipliers, precision, &Multiplier::precision);
  TRIREME_ASSERT(used != multipliers.end());  // why_not says so before
  return used->flops;
}

std::span<const EngineKind> EngineKinds() { return kEngines; }

const EngineKind& FindEngine(std::string_view name) {
  std::vector<std::string> names;
  for (const EngineKind& kind : kEngines) {
    if (kind.name == name) return kind;
    names.emplace_back(kind.name);
  }
  throw UsageError("there is no engine \"{}\"; choose from {}{}", name, fmt::join(names, ", "),
                   DidYouMean(name, names));
}

Precision ResolvePrecision(const EngineKind& kind, std::string_view wanted) {
  if (wanted == NameOf(Precision::kF32)) return Precision::kF32;
  const std::string why_not = kind.why_not(Precision::kBf16);
  if (why_not.empty()) return Precision::kBf16;
  if (wanted == "bf16-or-f32") return Precision::kF32;
  throw UsageError("trainer.precision = \"bf16\": {}; \"bf16-or-f32\" falls back to float32",
                   why_not);
}

}  // namespace trireme
