// Whatever bytes come through a memory box's door, they end their sender at most: a client beside
// them finds what it has put, and the box goes on, also where it offers to move long values beside
// the connection. Random words and values from a fixed seed, few in ./test; TRIREME_FUZZ_S in the
// environment goes on for so many seconds, which the sanitizer builds make sharp.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/clock.h"
#include "base/random.h"
#include "base/text.h"
#include "transport/check/pretend_end.h"
#include "transport/check/what_of.h"
#include "transport/memory/image.h"
#include "transport/memory/zero_runs.h"
#include "transport/tcp/endpoint.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/memory_door.h"
#include "transport/tcp/memory_way.h"

namespace trireme {
namespace {

constexpr double kTimeout_s = 60;  // of a machine with much to do

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  uint64_t Bits() { return Hash(seed_, count_++); }
  size_t Below(size_t limit) { return Bits() % limit; }
  bool OneIn(size_t many) { return Below(many) == 0; }
  // Numbers at which something ends.
  uint64_t Border() {
    const uint64_t borders[] = {0,
                                1,
                                2,
                                99,
                                100,
                                101,
                                511,
                                512,
                                4096,
                                1 << 20,
                                (16 << 20) + 1,
                                ~uint64_t{0},
                                1u << 31,
                                ~0u,
                                uint64_t{1} << 62,
                                uint64_t{1} << 63};
    return OneIn(4) ? Bits() : borders[Below(std::size(borders))];
  }

 private:
  const uint64_t seed_;
  uint64_t count_ = 0;
};

Word RandomWord(Dice& dice, uint64_t& number) {
  Word word{.kind = WordKind(1 + dice.Below(size_t(WordKind::kProbe))),
            .type = dice.OneIn(2) ? RegionType::kF32 : RegionType::kI64,
            .region = uint32_t(dice.Below(3)),
            .number = dice.OneIn(8) ? dice.Border() : ++number,
            .offset = dice.OneIn(3) ? dice.Border() : 0,
            .length = dice.OneIn(3) ? dice.Border() : dice.Below(101)};
  const std::string name = dice.OneIn(2) ? "w" : dice.OneIn(2) ? "n" : std::string(63, 'x');
  std::memcpy(word.name, name.data(), name.size());
  if (dice.OneIn(32)) word.kind = WordKind(dice.Border());
  if (dice.OneIn(8)) word.type = RegionType(dice.Border());
  if (dice.OneIn(8)) word.region = uint32_t(dice.Border());
  if (dice.OneIn(8)) word.note_bytes = uint32_t(dice.Border());
  if (dice.OneIn(16)) word.runs = uint32_t(dice.Border());
  if (dice.OneIn(3)) word.runs = kByBulk;
  if (dice.OneIn(8)) word.guard = uint32_t(dice.Border());
  if (dice.OneIn(4)) word.a = int64_t(dice.Border());
  if (dice.OneIn(4)) word.b = int64_t(dice.Border());
  if (word.kind == WordKind::kWait && word.a > 3) word.a = 3;  // it would only wait
  for (size_t flips = dice.OneIn(16) ? dice.Below(9) : 0; flips > 0; --flips) {
    reinterpret_cast<unsigned char*>(&word)[dice.Below(sizeof(word))] ^= 1u << dice.Below(8);
  }
  return word;
}

std::unique_ptr<Wire> Knock(const std::string& address, Dice& dice) {
  std::unique_ptr<Wire> wire;
  asio::io_context io(1);
  const auto dial = [&]() -> asio::awaitable<void> {
    uint64_t found = 0;
    const Hello hello{.purpose = Purpose::kMemory,
                      .from = dice.OneIn(8),
                      .incarnation = dice.OneIn(4) ? dice.Border() : 7 + dice.Below(3),
                      .expected = dice.OneIn(8) ? dice.Border() : 0};
    Socket socket = co_await DialName(address, hello, "", &found);
    wire = std::make_unique<Wire>(socket.release());
  };
  auto ended = Begin(io, dial());
  io.run();
  ended.get();
  return wire;
}

TEST(MemoryFuzz, WhateverComesThroughTheDoorEndsItsSenderAtMost) {
  const char* const wanted = std::getenv("TRIREME_FUZZ_S");
  const double seconds = wanted ? ParseNumber<double>(wanted).value_or(0) : 0;
  MemoryBox box({.bytes = size_t{16} << 20, .timeout_s = 0.5});
  MemoryDoor door(box, {.bulk = {.provider = "pretend", .open = OpenPretendEnd}});
  const auto memory = ConnectTcp({.meet = door.address(), .timeout_s = kTimeout_s});
  const std::vector<int64_t> numbers{3, -5, 7};
  const Region own = memory->Create("own", RegionType::kI64, 3);
  memory->Create("w", RegionType::kF32, 100);
  memory->Create("n", RegionType::kI64, 100);
  memory->Put(own, 0, numbers).Wait();
  Dice dice(20261118);
  int connections = 0;
  uint64_t words = 0;
  for (const Stopwatch watch; connections < 60 || watch.seconds() < seconds; ++connections) {
    auto wire = Knock(door.address(), dice);
    uint64_t number = 0;
    try {
      for (size_t left = wire ? 1 + dice.Below(12) : 0; left > 0; --left, ++words) {
        Word word = RandomWord(dice, number);
        // All but what is the client's beside them.
        if (word.region == 0 && (IsChange(word.kind) || word.kind == WordKind::kLock)) {
          word.region = 1;
        }
        std::vector<std::byte> values;
        if (word.kind == WordKind::kBulk && dice.OneIn(2)) {  // a good one
          const std::string_view address = PretendEnd::kAddress;
          word.length = address.size();
          values.assign(std::as_bytes(std::span(address)).begin(),
                        std::as_bytes(std::span(address)).end());
        } else if (BringsValues(word.kind) && word.runs != kByBulk && word.length < 5000) {
          values.resize(size_t(word.length) * (dice.OneIn(2) ? 4 : 8));
          for (std::byte& value : values) value = std::byte(dice.Bits());
        }
        if (word.kind == WordKind::kAccumulate && values.size() > 8 && dice.OneIn(2)) {
          word.runs = 1;
          const ZeroRun run{uint32_t(word.length - 1), uint32_t(dice.Below(3))};
          std::memcpy(values.data(), &run, sizeof(run));
          values.resize(sizeof(run) + 4);
        }
        const auto bytes = std::as_bytes(std::span(&word, 1));
        const size_t cut = dice.OneIn(16) ? dice.Below(sizeof(word)) : sizeof(word);
        wire->Write(bytes.first(cut), values, After(kTimeout_s));
        if (cut < sizeof(word)) break;
        if (dice.OneIn(4)) {  // hears what it is told, or some of it
          std::vector<std::byte> answer(sizeof(Reply));
          wire->Read(answer, After(0.2));
        }
      }
    } catch (const WireBroken&) {  // it was sent away, or had nothing to hear
    }
    if (connections % 20 != 0) continue;
    wire.reset();
    std::vector<int64_t> got(3);
    memory->Get(own, 0, got).Wait();
    ASSERT_EQ(got, numbers);
  }
  std::printf("%d connections, %llu words; the box refused %llu\n", connections,
              static_cast<unsigned long long>(words),
              static_cast<unsigned long long>(box.store().Look().refused));
}

}  // namespace
}  // namespace trireme
