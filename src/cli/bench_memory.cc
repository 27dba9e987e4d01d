// How fast processes put, get and add through a memory box, each way beside what it stands on:
// copies in memory, a futex, a socket, bare libfabric. All take turns, so that they see the same
// noise.
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "base/cores.h"
#include "cli/bare_fabric.h"
#include "cli/bench.h"
#include "cli/command.h"
#include "transport/fabric/end.h"
#include "transport/fabric/library.h"
#include "transport/forked.h"
#include "transport/memory/mapped.h"
#include "transport/shared_array.h"
#include "transport/tcp/memory_door.h"
#include "transport/tcp/memory_way.h"
#include "transport/tcp/world.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--bytes", "LIST", "sizes of what is put, got and added (default: 64,47000000)"},
    {"--repeat", "N", "repetitions of each; medians are shown (default: 15)"},
    {"--threads", "N", "threads of the box (default: the cores of the job)"},
    {"--fabric", "LIST",
     "providers of libfabric, separated by commas (default: tcp;ofi_rxm,shm where there is the "
     "plugin, see `trireme doctor`); '': none"},
    {"--json", "", "print JSON"},
};

constexpr size_t kSmall = 65536;  // below, a round trip is what counts, and many are timed
constexpr int kCalls = 100;       // of these
constexpr double kPatience_s = 120;
constexpr size_t kMostProviders = 4;

// Reads `in` bytes, writes `out`.
struct Request {
  uint64_t in = 0, out = 0;
};

// What the two processes agree on.
struct Place {
  FutexEvent ping, pong;
  Request request;  // of the bare futex
  std::byte carried[kSmall];
  std::atomic<int> box_port;  // 0: not yet
  std::atomic<int> over;
  std::atomic<int> fabric_ports[kMostProviders];  // with these the box offers a provider each
  BareFabricPlace bare[kMostProviders];
};

struct What {
  std::vector<size_t> sizes;
  std::vector<std::string> providers;
  int repeat = 1, threads = 1;
};

// ---- the process of the box, and the other end of the bare loops

// Answers every request on a socket.
void Echo(Wire& wire) {
  std::vector<std::byte> bytes;
  try {
    for (;;) {
      Request request;
      wire.Read(std::as_writable_bytes(std::span(&request, 1)), Wire::kNever);
      bytes.resize(std::max<size_t>(bytes.size(), std::max(request.in, request.out)));
      wire.Read(std::span(bytes).first(request.in), Wire::kNever);
      wire.Write(std::span<const std::byte>(bytes).first(request.out), {}, Wire::kNever);
    }
  } catch (const WireBroken&) {  // it is over
  }
}

// The same in shared memory.
void Answer(Place& place) {
  std::vector<std::byte> own(kSmall);
  const int spins = SpinsFor(2);
  for (uint32_t count = 0; !place.over.load();) {
    if (place.ping.Count() == count) {
      place.ping.Wait(count, After(0.1), spins);
      continue;
    }
    count = place.ping.Count();
    std::memcpy(own.data(), place.carried, place.request.in);
    std::memcpy(place.carried, own.data(), place.request.out);
    place.pong.Notify();
  }
}

int PortOf(const MemoryDoor& door) {
  const std::string address = door.address();
  return std::stoi(address.substr(address.rfind(':') + 1));
}

int KeepBox(Place& place, const std::shared_ptr<MemoryImage>& image, const What& what,
            int listener) {
  MemoryBox box(image, {.threads = what.threads, .timeout_s = kPatience_s});
  MemoryDoor door(box, {});
  std::jthread futex([&] { Answer(place); });
  // Ends that thread before it is joined, also where the box fails.
  const std::unique_ptr<std::atomic<int>, void (*)(std::atomic<int>*)> over(
      &place.over, [](std::atomic<int>* flag) { flag->store(1); });
  std::vector<std::unique_ptr<MemoryDoor>> doors;
  std::vector<std::unique_ptr<BareFabricBox>> bare;
  for (size_t i = 0; i < what.providers.size(); ++i) {
    const std::string& provider = what.providers[i];
    doors.push_back(std::make_unique<MemoryDoor>(
        box, MemoryDoorSetup{.bulk = {.provider = provider, .open = OpenFabricEnd}}));
    bare.push_back(std::make_unique<BareFabricBox>(
        place.bare[i], provider, *std::max_element(what.sizes.begin(), what.sizes.end())));
    place.fabric_ports[i].store(PortOf(*doors.back()));
  }
  place.box_port.store(PortOf(door));
  Wire wire(accept(listener, nullptr, nullptr));
  Echo(wire);
  return 0;
}

// ---- the process that measures

struct Try {
  std::string way, what, beside;
  std::function<void()> run, bare;
  std::vector<double> times = {}, bare_times = {};
};

double SecondsOf(const std::function<void()>& run, int calls) {
  const Stopwatch watch;
  for (int i = 0; i < calls; ++i) run();
  return watch.seconds() / calls;
}

void Measure(std::vector<Try>& tries, size_t bytes, int repeat) {
  const int calls = bytes < kSmall ? kCalls : 1;
  for (int i = 0; i < repeat + 1; ++i) {
    for (Try& each : tries) {
      const double bare = SecondsOf(each.bare, calls), own = SecondsOf(each.run, calls);
      if (i == 0) continue;  // memory is touched for the first time
      each.bare_times.push_back(bare);
      each.times.push_back(own);
    }
  }
}

int ConnectTo(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    throw Error("cannot connect to 127.0.0.1:{}", port);
  }
  return fd;
}

// A way to the box, and what it is beside.
struct Way {
  std::string name;
  std::unique_ptr<Memory> memory;
  std::unique_ptr<BareFabricClient> bare = nullptr;
  bool by_socket = false;
};

std::vector<Way> ConnectAll(Place& place, const std::shared_ptr<MemoryImage>& image,
                            const std::vector<std::string>& providers) {
  const auto at = [](int port) { return fmt::format("127.0.0.1:{}", port); };
  std::vector<Way> ways;
  ways.push_back({"mapped", ConnectMapped(image, kPatience_s)});
  ways.push_back(
      {"tcp", ConnectTcp({.meet = at(place.box_port.load()), .timeout_s = kPatience_s})});
  ways.back().by_socket = true;
  for (size_t i = 0; i < providers.size(); ++i) {
    ways.push_back({fmt::format("fabric ({})", providers[i]),
                    ConnectTcp({.meet = at(place.fabric_ports[i].load()),
                                .timeout_s = kPatience_s,
                                .long_values = LongValues::kBulk,
                                .open_bulk = OpenFabricEnd}),
                    std::make_unique<BareFabricClient>(place.bare[i], providers[i])});
  }
  return ways;
}

BenchTable MeasureAll(Place& place, const std::shared_ptr<MemoryImage>& image, int port,
                      const What& what) {
  Wire wire(ConnectTo(port));
  while (place.box_port.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const std::vector<Way> ways = ConnectAll(place, image, what.providers);
  const int spins = SpinsFor(2);
  BenchTable table;
  for (const size_t bytes : what.sizes) {
    const size_t length = bytes / sizeof(float);
    std::vector<float> values(length, 1), got(length);
    const auto ask = [&](uint64_t in, uint64_t out) {
      const Request request{in, out};
      wire.Write(std::as_bytes(std::span(&request, 1)), std::as_bytes(std::span(values)).first(in),
                 Wire::kNever);
      wire.Read(std::as_writable_bytes(std::span(got)).first(out), Wire::kNever);
    };
    const bool small = bytes < kSmall;
    const uint64_t least = std::min<uint64_t>(bytes, 64);
    const std::function<void()> copy = [&] {
      std::memcpy(got.data(), values.data(), length * sizeof(float));
    };
    const auto carry = [&](uint64_t in, uint64_t out) {
      const uint32_t count = place.pong.Count();
      place.request = {in, out};
      std::memcpy(place.carried, values.data(), in);
      place.ping.Notify();
      while (place.pong.Count() == count) place.pong.Wait(count, After(kPatience_s), spins);
      std::memcpy(got.data(), place.carried, out);
    };
    const std::function<void()> there = [&] { carry(length * sizeof(float), 0); };
    const std::function<void()> back = [&] { carry(0, length * sizeof(float)); };
    const std::function<void()> upload = [&] { ask(length * sizeof(float), least); };
    const std::function<void()> download = [&] { ask(least, length * sizeof(float)); };
    std::vector<Try> tries;
    for (const Way& each : ways) {
      Memory* const memory = each.memory.get();
      BareFabricClient* const ends = each.bare.get();
      const std::string& way = each.name;
      const Region region = memory->Create(fmt::format("bench{}", bytes), RegionType::kF32, length);
      std::function<void()> bare_put = small ? there : copy, bare_get = small ? back : copy;
      std::string beside = small ? "futex" : "copy";
      if (each.by_socket) {
        beside = "socket";
        bare_put = upload;
        bare_get = download;
      } else if (ends) {
        beside = "fi_write";
        bare_put = [=, &values] { ends->Write(std::as_bytes(std::span(values))); };
        bare_get = [=, &got] { ends->Read(std::as_writable_bytes(std::span(got))); };
      }
      tries.push_back(
          {way, "put", beside,
           [=, &values] { memory->Put(region, 0, std::span<const float>(values)).Wait(); },
           bare_put});
      tries.push_back({way, "get", ends ? "fi_read" : beside,
                       [=, &got] { memory->Get(region, 0, std::span<float>(got)).Wait(); },
                       bare_get});
      tries.push_back({way, "add", beside,
                       [=, &values] { memory->Accumulate(region, 0, values).Wait(); }, bare_put});
    }
    Measure(tries, bytes, what.repeat);
    for (const Try& each : tries) {
      const double own = Median(each.times), bare = Median(each.bare_times);
      table.Add({{"way", Json(each.way)},
                 {"operation", Json(each.what)},
                 {"bytes", Json(int64_t(bytes))},
                 {"ms", Json(1e3 * own), 4},
                 {"GB/s", Json(double(bytes) / own * 1e-9), 2},
                 {"beside", Json(each.beside)},
                 {"its ms", Json(1e3 * bare), 4},
                 {"its ms / ms", Json(bare / own), 2}});
    }
  }
  return table;
}

std::vector<size_t> SizesOf(const Args& args) {
  std::vector<size_t> sizes;
  for (const std::string& word : Split(args.Value("--bytes").value_or("64,47000000"), ',')) {
    const auto bytes = ParseNumber<size_t>(word);
    if (!bytes || *bytes < sizeof(float) || *bytes > (size_t{1} << 32)) {
      throw UsageError("--bytes must be sizes between 4 and 2^32, got {}", word);
    }
    sizes.push_back(*bytes);
  }
  return sizes;
}

// Those that were asked for, or the two that need no hardware.
std::vector<std::string> ProvidersOf(const Args& args, const Log& log) {
  const auto list = args.Value("--fabric");
  if (!list) {
    try {
      FabricLibrary::Find();  // and opened by the processes that are forked
    } catch (const Error& error) {
      log.Info("bench", "without the way fabric: {}", error.what());
      return {};
    }
  }
  std::vector<std::string> providers = Split(list.value_or("tcp;ofi_rxm,shm"), ',');
  std::erase(providers, "");
  if (providers.size() > kMostProviders) {
    throw UsageError("--fabric must name at most {} providers", kMostProviders);
  }
  return providers;
}

int Run(const Args& args, Process& process) {
  const What what{.sizes = SizesOf(args),
                  .providers = ProvidersOf(args, Log(process.log)),
                  .repeat = RepeatOf(args, 15),
                  .threads = ThreadsOf(args)};
  const size_t clients = 2 + what.providers.size();
  size_t room = size_t{16} << 20;
  for (const size_t bytes : what.sizes) {
    room += (clients + 2) * (bytes + kBoxPage) + (size_t{1} << 20);
  }
  const auto image = MemoryImage::Anonymous(room);
  SharedArray<Place> places(1);
  Place& place = places[0];
  int port = 0;
  const int listener = ListenOnLoopback(port);
  const auto run = [&](int rank) {
    if (rank == 1) return KeepBox(place, image, what, listener);
    const BenchTable table = MeasureAll(place, image, port, what);
    process.out.Write(table.Text(args.Has("--json")));
    return 0;
  };
  const auto lost = [&](int, const std::string&) { place.over.store(1); };
  return RunForked({.ranks = 2, .run = run, .lost = lost});
}

}  // namespace

extern const Command kBenchMemory;
const Command kBenchMemory = {
    .name = "bench memory",
    .summary = "measure a memory box, beside copies, a futex, a socket and libfabric",
    .usage = "trireme bench memory [flags]",
    .examples =
        "trireme bench memory\n"
        "trireme bench memory --bytes 64,1000000 --repeat 31 --json\n"
        "trireme bench memory --fabric 'verbs;ofi_rxm'\n",
    .flags = kFlags,
    .run = Run,
};

}  // namespace trireme
