// How fast ranks sum, beside how fast memory is copied in the same run.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/clock.h"
#include "base/error.h"
#include "cli/bench.h"
#include "cli/bench_origin.h"
#include "cli/command.h"
#include "launch/launcher.h"
#include "record/json.h"
#include "transport/collective/all_reduce.h"
#include "transport/collective/broadcast.h"
#include "transport/shared_memory.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--ranks", "N", "ranks that sum together (default: 2)"},
    {"--transport", "NAME", "one of `trireme list transports` (default: shm; mpi under mpirun)"},
    {"--bytes", "LIST", "sizes of the sum in bytes (default: 65536,47000000,102000000)"},
    {"--repeat", "N", "repetitions of each; medians are shown (default: 21)"},
    {"--json", "", "print JSON"},
};

struct Settings {
  std::vector<size_t> bytes;
  int repeat = 21;
};

struct Row {
  std::string algorithm;
  size_t bytes = 0;
  double seconds = 0, copy_seconds = 0;  // medians
};

constexpr Tag kTag = 1, kSyncTag = 2;

std::vector<size_t> ParseSizes(const std::string& list) {
  std::vector<size_t> sizes;
  for (const std::string& word : Split(list, ',')) {
    const auto bytes = ParseNumber<size_t>(word);
    if (!bytes || *bytes < sizeof(float) || *bytes > (size_t{1} << 32)) {
      throw UsageError("--bytes must be sizes between 4 and 2^32, got {}", word);
    }
    sizes.push_back(*bytes);
  }
  return sizes;
}

// The slowest rank's time of one call, as all ranks begin it together.
template <class F>
double Timed(Group& group, const F& call) {
  Barrier(group, kSyncTag);
  const Stopwatch watch;
  call();
  const auto all = AllGather(group, kSyncTag, watch.seconds());
  return *std::max_element(all.begin(), all.end());
}

// One algorithm and size: sums and copies of as many bytes take turns, so that both see the same
// noise. A sum of N ranks reads and writes as much memory as N copies.
template <class F>
Row Measure(Group& group, int repeat, std::span<float> values, const F& sum) {
  std::vector<float> copy(values.size());
  std::vector<double> sums, copies;
  for (int i = 0; i < repeat + 2; ++i) {
    std::fill(values.begin(), values.end(), 1.0f);
    const double copied =
        Timed(group, [&] { std::memcpy(copy.data(), values.data(), values.size_bytes()); });
    const double summed = Timed(group, [&] { sum(values); });
    if (i < 2) continue;  // memory is touched for the first time
    copies.push_back(copied);
    sums.push_back(summed);
  }
  const float expected = float(group.size());
  if (values.front() != expected || values.back() != expected) throw Error("the sum is wrong");
  return {"", values.size_bytes(), Median(sums), Median(copies)};
}

std::vector<Row> MeasureAll(World& world, const Settings& settings) {
  Group& group = world.group();
  HostGroups hosts(group, HostOfRank(group, kTag));
  std::vector<float> scratch(kAllReduceScratch);
  std::vector<Row> rows;
  for (const size_t bytes : settings.bytes) {
    const size_t floats = bytes / sizeof(float);
    if (SharedMemory* memory = group.shared_memory()) {
      rows.push_back(
          Measure(group, settings.repeat, memory->Allocate(floats),
                  [&](std::span<float> values) { memory->SumInOrder({{values}}, values); }));
      rows.back().algorithm = "shared";
    }
    std::vector<float> values(floats);
    for (const AllReduceAlgorithm* algorithm : UsableAllReduces(group, WireType::kF32)) {
      rows.push_back(Measure(group, settings.repeat, values, [&](std::span<float> v) {
        AllReduceSum(*algorithm, WireType::kF32, hosts, kTag, v, scratch);
      }));
      rows.back().algorithm = algorithm->name;
    }
  }
  return rows;
}

std::string Table(const std::vector<Row>& rows, const TransportOptions& transport) {
  std::string text = fmt::format(
      "{} ranks over {}; copy: every rank copies as many bytes at the same time\n"
      "{:<18} {:>12} {:>12} {:>10} {:>12} {:>14}\n",
      transport.ranks, transport.name, "algorithm", "bytes", "ms", "GB/s", "copy ms", "copy / sum");
  for (const Row& row : rows) {
    text += fmt::format("{:<18} {:>12} {:>12.4f} {:>10.2f} {:>12.4f} {:>14.2f}\n", row.algorithm,
                        row.bytes, 1e3 * row.seconds, double(row.bytes) / row.seconds * 1e-9,
                        1e3 * row.copy_seconds, row.copy_seconds / row.seconds);
  }
  return text;
}

std::string JsonText(const std::vector<Row>& rows, const TransportOptions& transport) {
  Json list = Json::Array();
  for (const Row& row : rows) {
    Json entry = Json::Object();
    entry.Add("what", "allreduce");
    entry.Add("algorithm", row.algorithm);
    entry.Add("transport", transport.name);
    entry.Add("ranks", transport.ranks);
    entry.Add("bytes", int64_t(row.bytes));
    entry.Add("ms", 1e3 * row.seconds);
    entry.Add("gb_per_s", double(row.bytes) / row.seconds * 1e-9);
    entry.Add("copy_ms", 1e3 * row.copy_seconds);
    entry.Add("share_of_peak", row.copy_seconds / row.seconds);
    list.Append(WithOrigin(std::move(entry)));
  }
  return list.Text() + "\n";
}

int Run(const Args& args, Process& process) {
  Settings settings;
  settings.bytes = ParseSizes(args.Value("--bytes").value_or("65536,47000000,102000000"));
  settings.repeat = args.Number("--repeat", settings.repeat);
  if (settings.repeat < 1) throw UsageError("--repeat must be at least 1");
  const auto launched = FindLauncher([](const char* name) { return std::getenv(name); });
  TransportOptions transport;
  const bool several = launched && launched->size.value_or(1) > 1;
  transport.name = args.Value("--transport").value_or(several ? kAutoTransport : "shm");
  transport.ranks = args.Number("--ranks", 2);
  if (transport.ranks < 1 || transport.ranks > 1024) {
    throw UsageError("--ranks must be between 1 and 1024");
  }
  Launcher launcher(transport, args.Has("--ranks"), launched);
  launcher.Join();
  size_t shared = 0;
  for (const size_t bytes : settings.bytes) shared += bytes + 64;
  const bool json = args.Has("--json");
  return launcher.Run({.shared_bytes = shared}, [&](World& world) {
    const std::vector<Row> rows = MeasureAll(world, settings);
    if (world.rank() == 0) {
      process.out.Write(json ? JsonText(rows, transport) : Table(rows, transport));
    }
    return 0;
  });
}

}  // namespace

extern const Command kBenchAllReduce;
const Command kBenchAllReduce = {
    .name = "bench allreduce",
    .summary = "measure how fast ranks sum, beside the speed of memory",
    .usage = "trireme bench allreduce [flags]",
    .examples =
        "trireme bench allreduce                              # two processes, shared memory\n"
        "trireme bench allreduce --transport tcp --ranks 4\n"
        "mpirun -n 2 trireme bench allreduce --json           # with MPI's own sum\n",
    .flags = kFlags,
    .run = Run,
};

}  // namespace trireme
