#include "engine/cuda/cards.h"

#include <fmt/core.h>

#include <cstdlib>

#include "base/error.h"
#include "base/plugin.h"
#include "base/text.h"
#include "engine/cuda/library.h"

namespace trireme::cuda {

std::vector<std::string> Targets() {
  std::vector<std::string> targets;
  for (const Card& card : ThisMachine().cards) {
    if (card.problem.empty()) targets.push_back(card.target);
  }
  return targets;
}

std::string WhyNot(Precision) { return ""; }  // the oldest that a plugin is built for has them all

std::string Missing(std::optional<int> number) {
  const Survey& survey = ThisMachine();
  if (!survey.problem.empty()) return survey.problem;
  const int count = int(survey.cards.size()), wanted = number.value_or(0);
  if (wanted >= count) {
    return fmt::format("this machine has {}; choose {}", Counted(count, "card"),
                       count == 1 ? "cuda:0" : fmt::format("cuda:0 to cuda:{}", count - 1));
  }
  return survey.cards[size_t(wanted)].problem;
}

bool Absent() { return ThisMachine().absent; }

std::vector<std::string> Details() {
  const Survey& survey = ThisMachine();
  std::vector<std::string> lines;
  for (const Card& card : survey.cards) {
    lines.push_back(fmt::format("cuda:{}: {}, {}{}", lines.size(), card.name,
                                FormatBytes(double(card.memory_bytes)),
                                card.problem.empty() ? "" : "; " + card.problem));
  }
  if (!survey.versions.empty()) lines.push_back(survey.versions);
  return lines;
}

namespace {

const Table& ThePlugin() {
  return OpenTable(FindPlugin(std::getenv("TRIREME_CUDA_PLUGIN"), ProgramFolder()));
}

std::unique_ptr<Device> MakeDevice(const EngineOptions& options, std::optional<int> number,
                                   int place) {
  if (const std::string missing = Missing(number); !missing.empty()) throw Error("{}", missing);
  const int card = number.value_or(place % int(ThisMachine().cards.size()));
  return ThePlugin().make_device(card, options);
}

}  // namespace

Made Make(Precision precision, const EngineOptions& options, std::optional<int> number, int place) {
  Made made;
  made.device = MakeDevice(options, number, place);
  made.engine = ThePlugin().make_engine(*made.device, precision, options);
  made.groups = ThePlugin().make_groups(*made.device);
  return made;
}

Ceilings::Ceilings(std::optional<int> number) : device_(MakeDevice({}, number, 0)) {}

double Ceilings::Flops(Precision precision, double seconds) const {
  return ThePlugin().measure_products(*device_, precision, seconds);
}

double Ceilings::CopiedBytes(double seconds) const {
  return ThePlugin().measure_copy(*device_, seconds);
}

}  // namespace trireme::cuda
