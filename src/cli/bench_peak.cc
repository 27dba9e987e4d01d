// What the processor can do at best: the ceilings of everything else.
#include <set>

#include "cli/bench.h"
#include "cli/command.h"
#include "engine/cpu/speed.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {kThreadsFlag, kRepeatFlag, kBenchJsonFlag};
constexpr double kSeconds = 0.1;  // of one repetition

int Run(const Args& args, Process& process) {
  const int threads = ThreadsOf(args), repeat = RepeatOf(args, 7);
  std::vector<const cpu::MatrixUnit*> units = {nullptr};
  for (const cpu::MatrixUnit* unit : cpu::AllMatrixUnits()) {
    if (unit->missing().empty()) units.push_back(unit);
  }
  BenchTable table;
  for (const int count : std::set<int>{1, threads}) {
    Team team(count);
    std::vector<double> copies;
    std::vector<std::vector<double>> flops(units.size());
    for (int i = 0; i < repeat; ++i) {
      for (size_t u = 0; u < units.size(); ++u) {
        flops[u].push_back(cpu::MeasureMultiplyAdds(team, kSeconds, units[u]));
      }
      copies.push_back(cpu::MeasureCopy(team, kSeconds));
    }
    for (size_t u = 0; u < units.size(); ++u) {
      table.Add({{"what", "peak"},
                 {"threads", count},
                 {"precision", PrecisionText(units[u])},
                 {"instructions", units[u] ? std::string(units[u]->name) : "vectors"},
                 {"gflops", Median(flops[u]) * 1e-9, 1},
                 {"copy_gb_per_s", Median(copies) * 1e-9, 1}});
    }
  }
  process.out.Write(table.Text(args.Has("--json")));
  return 0;
}

}  // namespace

extern const Command kBenchPeak;
const Command kBenchPeak = {
    .name = "bench peak",
    .summary = "multiply-adds and copied bytes per second at best",
    .usage = "trireme bench peak [flags]",
    .examples =
        "trireme bench peak                    # on one core and on all\n"
        "trireme bench peak --threads 1 --json\n",
    .flags = kFlags,
    .run = Run,
};

}  // namespace trireme
