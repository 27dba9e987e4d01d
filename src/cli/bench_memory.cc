// How fast processes put, get and add through a memory box, each way beside what it stands on:
// copies in memory, a futex, a socket. All take turns, so that they see the same noise.
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
#include "cli/bench.h"
#include "cli/command.h"
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
    {"--json", "", "print JSON"},
};

constexpr size_t kSmall = 65536;  // below, a round trip is what counts, and many are timed
constexpr int kCalls = 100;       // of these
constexpr double kPatience_s = 120;

// What the two processes agree on.
struct Place {
  FutexEvent ping, pong;
  std::atomic<int> box_port;  // 0: not yet
  std::atomic<int> over;
};

// ---- the process of the box, and the other end of the bare loops

// Answers every request on a socket: reads `in` bytes, writes `out`.
struct Request {
  uint64_t in = 0, out = 0;
};

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

void Answer(Place& place) {
  const int spins = SpinsFor(2);
  for (uint32_t count = 0; !place.over.load();) {
    if (place.ping.Count() == count) {
      place.ping.Wait(count, After(0.1), spins);
      continue;
    }
    count = place.ping.Count();
    place.pong.Notify();
  }
}

int KeepBox(Place& place, const std::shared_ptr<MemoryImage>& image, int threads, int listener) {
  MemoryBox box(image, {.threads = threads, .timeout_s = kPatience_s});
  MemoryDoor door(box, {});
  const std::string address = door.address();
  std::jthread futex([&] { Answer(place); });
  place.box_port.store(std::stoi(address.substr(address.rfind(':') + 1)));
  Wire wire(accept(listener, nullptr, nullptr));
  Echo(wire);
  place.over.store(1);
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

BenchTable MeasureAll(Place& place, const std::shared_ptr<MemoryImage>& image, int port,
                      const std::vector<size_t>& sizes, int repeat) {
  Wire wire(ConnectTo(port));
  while (place.box_port.load() == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto mapped = ConnectMapped(image, kPatience_s);
  const auto tcp = ConnectTcp(
      {.meet = fmt::format("127.0.0.1:{}", place.box_port.load()), .timeout_s = kPatience_s});
  const int spins = SpinsFor(2);
  BenchTable table;
  for (const size_t bytes : sizes) {
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
    const std::function<void()> futex = [&] {
      const uint32_t count = place.pong.Count();
      place.ping.Notify();
      while (place.pong.Count() == count) place.pong.Wait(count, After(kPatience_s), spins);
    };
    const std::function<void()> upload = [&] { ask(length * sizeof(float), least); };
    const std::function<void()> download = [&] { ask(least, length * sizeof(float)); };
    std::vector<Try> tries;
    for (Memory* memory : {mapped.get(), tcp.get()}) {
      const bool is_tcp = memory == tcp.get();
      const std::string way = is_tcp ? "tcp" : "mapped";
      const Region region = memory->Create(fmt::format("bench{}", bytes), RegionType::kF32, length);
      const std::function<void()> bare = small ? futex : copy;
      const std::string beside = is_tcp ? "socket" : small ? "futex" : "copy";
      tries.push_back(
          {way, "put", beside,
           [=, &values] { memory->Put(region, 0, std::span<const float>(values)).Wait(); },
           is_tcp ? upload : bare});
      tries.push_back({way, "get", beside,
                       [=, &got] { memory->Get(region, 0, std::span<float>(got)).Wait(); },
                       is_tcp ? download : bare});
      tries.push_back({way, "add", beside,
                       [=, &values] { memory->Accumulate(region, 0, values).Wait(); },
                       is_tcp ? upload : bare});
    }
    Measure(tries, bytes, repeat);
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

int Run(const Args& args, Process& process) {
  const std::vector<size_t> sizes = SizesOf(args);
  const int repeat = RepeatOf(args, 15), threads = ThreadsOf(args);
  size_t room = size_t{16} << 20;
  for (const size_t bytes : sizes) room += 4 * (bytes + kBoxPage) + (size_t{1} << 20);
  const auto image = MemoryImage::Anonymous(room);
  SharedArray<Place> places(1);
  Place& place = places[0];
  int port = 0;
  const int listener = ListenOnLoopback(port);
  const auto run = [&](int rank) {
    if (rank == 1) return KeepBox(place, image, threads, listener);
    const BenchTable table = MeasureAll(place, image, port, sizes, repeat);
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
    .summary = "measure a memory box, beside copies, a futex and a socket",
    .usage = "trireme bench memory [flags]",
    .examples =
        "trireme bench memory\n"
        "trireme bench memory --bytes 64,1000000 --repeat 31 --json\n",
    .flags = kFlags,
    .run = Run,
};

}  // namespace trireme
