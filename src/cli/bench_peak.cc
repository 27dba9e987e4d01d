// What the processor can do at best: the ceilings of everything else.
#include <set>

#include "cli/bench.h"
#include "cli/command.h"
#include "cli/recipe_flags.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {kDeviceFlag, kThreadsFlag, kRepeatFlag, kBenchJsonFlag};
constexpr double kSeconds = 0.1;  // of one repetition

int Run(const Args& args, Process& process) {
  const BenchEngine engine = EngineOf(args);
  const int repeat = RepeatOf(args, 7);
  BenchTable table;
  const bool on_host = engine.device.kind->host_memory;  // elsewhere threads change nothing
  for (const int count : std::set<int>{1, on_host ? engine.threads : 1}) {
    const Ceiling ceiling = engine.CeilingOn(count);
    std::vector<double> copies;
    std::vector<std::vector<double>> flops(ceiling.multipliers.size());
    for (int i = 0; i < repeat; ++i) {
      for (size_t m = 0; m < flops.size(); ++m) {
        flops[m].push_back(ceiling.multipliers[m].flops(kSeconds));
      }
      copies.push_back(ceiling.copy(kSeconds));
    }
    for (size_t m = 0; m < flops.size(); ++m) {
      const Ceiling::Multiplier& multiplier = ceiling.multipliers[m];
      table.Add({{"what", "peak"},
                 {"threads", count},
                 {"precision", std::string(NameOf(multiplier.precision))},
                 {"instructions", multiplier.instructions},
                 {"gflops", Median(flops[m]) * 1e-9, 1},
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
    .summary = "measure the most multiply-adds and copied bytes per second",
    .usage = "trireme bench peak [flags]",
    .examples =
        "trireme bench peak                    # on one core and on all\n"
        "trireme bench peak --threads 1 --json\n",
    .flags = kFlags,
    .run = Run,
};

}  // namespace trireme
