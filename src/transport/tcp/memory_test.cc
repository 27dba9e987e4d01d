// The way `tcp` to a memory box.
#include <cstring>
#include <limits>
#include <optional>

#include "transport/check/conformance.h"
#include "transport/check/pretend_end.h"
#include "transport/check/with_memory.h"
#include "transport/tcp/cutter.h"
#include "transport/tcp/endpoint.h"
#include "transport/tcp/listener.h"
#include "transport/tcp/memory_door.h"
#include "transport/tcp/memory_way.h"
#include "transport/tcp/testing.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr double kTimeout_s = 60;  // of a machine with much to do
const MemoryBoxSetup kSetup = {.bytes = size_t{64} << 20, .threads = 2, .timeout_s = kTimeout_s};

class TcpWay : public testing::TestWithParam<ConformanceCase> {};
TEST_P(TcpWay, Conforms) {
  CheckCase(GetParam(), [](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    MemoryBox box(kSetup);
    MemoryDoor door(box, {.secret = "s"});
    RunRanks(ranks, timeout_s, [&](World& world) {
      const auto memory =
          ConnectTcp({.meet = door.address(), .secret = "s", .timeout_s = kTimeout_s});
      WithMemory own(world, *memory);
      fn(own);
    });
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, TcpWay, testing::ValuesIn(MemoryCases()), CaseName);

// Long values beside the connection, by ends of this process: the box's half and the client's half
// of the way `fabric`, without libfabric.
MemoryDoorSetup Offering() {
  return {.secret = "s", .bulk = {.provider = "pretend", .open = OpenPretendEnd}};
}
class BulkWay : public testing::TestWithParam<ConformanceCase> {};
TEST_P(BulkWay, Conforms) {
  CheckCase(GetParam(), [](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    MemoryBox box(kSetup);
    MemoryDoor door(box, Offering());
    RunRanks(ranks, timeout_s, [&](World& world) {
      const auto memory = ConnectTcp({.meet = door.address(),
                                      .secret = "s",
                                      .timeout_s = kTimeout_s,
                                      .long_values = LongValues::kBulk,
                                      .open_bulk = OpenPretendEnd});
      WithMemory own(world, *memory);
      fn(own);
    });
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, BulkWay, testing::ValuesIn(MemoryCases()), CaseName);

// Wherever a connection is cut, in a word, in values or before an answer: each change is made once.
TEST(TcpMemory, EachChangeIsMadeOnceThroughCuts) {
  MemoryBox box(kSetup);
  MemoryDoor door(box, {});
  constexpr size_t kHello = 112, kWord = sizeof(Word),
                   kLength = 100'000;   // handshake, word, values
  const size_t first = kHello + kWord;  // Create
  Cutter cutter(door.address(),
                {first + 1, first + kWord, first + kWord + 1000, first + kWord + 4 * kLength,
                 kHello + kWord + 4 * kLength + 7, kHello + 20, kHello + kWord + 399'999,
                 kHello + 3 * (kWord + 4 * kLength), 3'000'000, 2'000'000, 5'000'000});
  const auto memory = ConnectTcp({.meet = cutter.address(), .timeout_s = kTimeout_s});
  const Region region = memory->Create("w", RegionType::kF32, kLength);
  const Region counter = memory->Create("n", RegionType::kI64, 1);
  const std::vector<float> ones(kLength, 1);
  std::vector<uint64_t> versions(60);
  for (int round = 0; round < 20; ++round) {
    std::vector<Ticket> tickets;
    for (int i = 0; i < 3; ++i) {
      tickets.push_back(memory->Accumulate(region, 0, ones, {}, &versions[size_t(3 * round + i)]));
    }
    EXPECT_EQ(memory->FetchAdd(counter, 0, 1), round);
    for (Ticket& ticket : tickets) ticket.Wait();
    std::vector<float> got(kLength);
    memory->Get(region, 0, got).Wait();
    EXPECT_EQ(got.front(), float(3 * round + 3));
    EXPECT_EQ(got.back(), float(3 * round + 3));
  }
  for (size_t i = 0; i < versions.size(); ++i) EXPECT_EQ(versions[i], i + 1);
  EXPECT_EQ(cutter.cut(), 11);
}

// A box may be killed right after it let a client in: its session must be there by then, or the
// next box would take the client for one that was away too long.
TEST(TcpMemory, WhoIsLetInHasASession) {
  MemoryBox box(kSetup);
  MemoryDoor door(box, {});
  std::vector<std::unique_ptr<Memory>> clients;
  for (uint32_t i = 0; i < kMostSessions; ++i) {
    clients.push_back(ConnectTcp({.meet = door.address(), .timeout_s = kTimeout_s}));
    ASSERT_EQ(box.store().Look().clients, int(i) + 1);
  }
  EXPECT_TRUE(Has(WhatOf([&] { ConnectTcp({.meet = door.address(), .timeout_s = kTimeout_s}); }),
                  "256 clients already"));
}

// Most moves of a sparse gradient are zero. What is sent is the rest, also when it is said again.
TEST(TcpMemory, RunsOfZerosAreNotSent) {
  MemoryBox box(kSetup);
  MemoryDoor door(box, {});
  constexpr size_t kLength = 100'003;
  constexpr size_t kBegin = 112 + sizeof(Word);  // handshake, Create
  Cutter cutter(door.address(), {kBegin + sizeof(Word) + 3, kBegin + 700, 112 + 900});
  const auto memory = ConnectTcp({.meet = cutter.address(), .timeout_s = kTimeout_s});
  const Region region = memory->Create("w", RegionType::kF32, kLength);
  std::vector<float> values(kLength), wanted(kLength);
  for (int add = 0; add < 10; ++add) {
    std::fill(values.begin(), values.end(), 0.0f);
    for (size_t i = size_t(add) * 7; i < kLength; i += 5000) {
      for (size_t j = i; j < std::min(kLength, i + 40); ++j) values[j] = float(j % 97);
    }
    if (add == 0) values.back() = 1;
    for (size_t i = 0; i < kLength; ++i) wanted[i] += values[i];
    memory->Accumulate(region, 0, values).Wait();
  }
  std::vector<float> got(kLength);
  uint64_t version = 0;
  memory->Get(region, 0, got, &version).Wait();
  EXPECT_EQ(version, 10u);
  EXPECT_TRUE(got == wanted);
  EXPECT_LT(memory->volume().sent, 10 * 4 * kLength / 50);
  values[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(Has(WhatOf([&] { memory->Accumulate(region, 0, values).Wait(); }), "not finite"));
  EXPECT_EQ(cutter.cut(), 3);
}

TEST(TcpMemory, ALockEndsWithASessionThatDoesNotComeBack) {
  MemoryBox box({.timeout_s = 0.2});
  MemoryDoor door(box, {});
  const auto memory = ConnectTcp({.meet = door.address()});
  const Region region = memory->Create("w", RegionType::kF32, 10);
  std::optional<Cutter> cutter(std::in_place, door.address(), std::vector<size_t>{});
  const auto other = ConnectTcp({.meet = cutter->address(), .timeout_s = 1});
  EXPECT_TRUE(other->Lock(other->Open("w", After(kTimeout_s)), After(kTimeout_s)));
  EXPECT_FALSE(memory->Lock(region, After(0)));
  cutter.reset();  // nobody is there any more
  EXPECT_TRUE(memory->Lock(region, After(kTimeout_s)));
}

TEST(TcpMemory, ABoxThatComesBackEmptyIsAnotherOne) {
  std::optional<MemoryBox> box(std::in_place, kSetup);
  std::optional<MemoryDoor> door(std::in_place, *box, MemoryDoorSetup{});
  const std::string address = door->address();
  const auto memory = ConnectTcp({.meet = address, .timeout_s = kTimeout_s});
  const Region region = memory->Create("w", RegionType::kF32, 10);
  memory->Accumulate(region, 0, std::vector<float>(10, 1)).Wait();
  EXPECT_EQ(memory->Wait(region, 1, After(kTimeout_s)), 1u);
  const uint64_t before = memory->incarnation();
  door.reset();
  box.reset();
  box.emplace(kSetup);
  door.emplace(*box, MemoryDoorSetup{.listen = address});
  const std::vector<float> ones(10, 1);
  EXPECT_THROW(memory->Accumulate(region, 0, ones).Wait(), MemoryRenewed);
  EXPECT_THROW(memory->Wait(region, 2, After(kTimeout_s)), MemoryRenewed);
  EXPECT_THROW(memory->FetchAdd(region, 0, 1), MemoryRenewed);
  EXPECT_NE(memory->incarnation(), before);
  const Region again = memory->Create("w", RegionType::kF32, 10);
  uint64_t version = 0;
  memory->Accumulate(again, 0, ones, {}, &version).Wait();
  EXPECT_EQ(version, 1u);
  EXPECT_EQ(memory->Wait(again, 1, After(kTimeout_s)), 1u);
}

// Whom a box sent away, and why; told by its threads.
class Told {
 public:
  MemoryWires::Refused Listen() {
    return [this](const std::string& who, const std::string& why) {
      std::lock_guard lock(mutex_);
      EXPECT_TRUE(who.starts_with("127.0.0.1:")) << who;
      told_.push_back(why);
    };
  }
  void Await(std::string_view part) {  // the client may hear it first
    for (;;) {
      {
        std::lock_guard lock(mutex_);
        for (const std::string& why : told_) {
          if (Has(why, part)) return;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> told_;  // guarded by mutex_
};

TEST(TcpMemory, StrangersAreSentAway) {
  Told told;
  MemoryBox box(kSetup);
  MemoryDoor door(box, {.secret = "s", .refused = told.Listen()});
  const std::string secret =
      WhatOf([&] { ConnectTcp({.meet = door.address(), .secret = "t", .timeout_s = kTimeout_s}); });
  EXPECT_TRUE(Has(secret, "secret is different")) << secret;
  told.Await("secret is different");
  EXPECT_TRUE(
      Has(WhatOf([&] { ConnectTcp({.meet = "10.0.0.1:9", .timeout_s = 1}); }), "needs a secret"));
  EXPECT_TRUE(Has(WhatOf([&] { ConnectTcp({.meet = "nowhere", .timeout_s = 1}); }),
                  "'nowhere' is not the memory box's HOST:PORT"));
  TcpSetup rank{.rank = 1, .size = 2, .meet = door.address(), .secret = "s", .join_s = kTimeout_s};
  EXPECT_TRUE(Has(WhatOf([&] { JoinTcp(rank); }), "this is a memory box"));
  told.Await("this is a memory box");
  // A program of another version, and one that speaks something else.
  for (const std::string& begin :
       {std::string("trireme\n\x07"), std::string("GET / HTTP/1.1\r\n")}) {
    asio::io_context io;
    Socket socket(io);
    socket.connect(EndpointOf(door.address()));
    std::string hello = begin;
    hello.resize(112);  // with a proof
    std::error_code end;
    asio::write(socket, asio::buffer(hello), end);
    std::string words;
    asio::read(socket, asio::dynamic_buffer(words), end);
  }
  told.Await("speaks version 2 of the protocol, the other one version 7");
  told.Await("not a rank");
  EXPECT_EQ(box.store().Look().refused, 4u);
}

// A connection of a client that says what none of ours does.
std::unique_ptr<Wire> Dial(const std::string& address, uint64_t client,
                           const std::string& secret = "") {
  std::unique_ptr<Wire> wire;
  while (!wire) {  // a handshake has little time
    asio::io_context io(1);
    const auto dial = [&]() -> asio::awaitable<void> {
      uint64_t found = 0;
      Socket socket = co_await DialName(
          address, {.purpose = Purpose::kMemory, .incarnation = client}, secret, &found);
      wire = std::make_unique<Wire>(socket.release());
    };
    auto ended = Begin(io, dial());
    io.run();
    ended.get();
  }
  return wire;
}

void Say(Wire& wire, const Word& word, std::string_view rest = {}) {
  wire.Write(std::as_bytes(std::span(&word, 1)), std::as_bytes(std::span(rest)), After(kTimeout_s));
}

Reply Hear(Wire& wire, std::string* rest = nullptr) {
  Reply answer;
  wire.Read(std::as_writable_bytes(std::span(&answer, 1)), After(kTimeout_s));
  if (rest) {
    rest->resize(answer.length);
    wire.Read(std::as_writable_bytes(std::span(*rest)), After(kTimeout_s));
  }
  return answer;
}

// Words that no client of ours says. The box sends their sender away; others go on.
TEST(TcpMemory, BadWordsEndOnlyTheirSender) {
  Told told;
  MemoryBox box(kSetup);
  MemoryDoor door(box, {.refused = told.Listen()});
  const auto memory = ConnectTcp({.meet = door.address(), .timeout_s = kTimeout_s});
  const Region region = memory->Create("w", RegionType::kF32, 100);
  memory->Accumulate(region, 0, std::vector<float>(100, 1)).Wait();
  const auto say = [&](const Word& word) {
    const auto wire = Dial(door.address(), 77);
    Say(*wire, word);
    EXPECT_THROW(Hear(*wire), WireBroken);
  };
  say({.kind = WordKind(99)});
  say({.kind = WordKind(0)});
  say({.kind = WordKind::kSlot, .length = 1});  // of another way
  say({.kind = WordKind::kBulk, .length = 1});
  say({.kind = WordKind::kAccumulate, .region = 0, .number = 1, .length = 100, .runs = 9});
  say({.kind = WordKind::kPut, .region = 0, .number = 1, .length = ~uint64_t{0}});
  std::vector<float> got(100);
  memory->Get(region, 0, got).Wait();
  EXPECT_EQ(got, std::vector<float>(100, 1));
  EXPECT_EQ(memory->Wait(region, 0, After(0)), 1u);
  told.Await("unknown word 99");
  told.Await("unknown word 0");
  told.Await("unknown word 10");
  told.Await("an address of 1 bytes");
  told.Await("an add of 100 values has 9 runs of zeros");
  told.Await("more than the box has room for");
  EXPECT_EQ(box.store().Look().refused, 6u);
}

// A link that was cut leaves a connection that only the client knows to be over. When it comes
// back, the end of that one is not its own.
TEST(TcpMemory, WhoComesBackBeforeItsEndIsNoticedIsNotAway) {
  constexpr double kAway_s = 0.2;
  MemoryBox box({.timeout_s = kAway_s});
  MemoryDoor door(box, {});
  const auto before = Dial(door.address(), 77);
  const auto wire = Dial(door.address(), 77);
  Word create{.kind = WordKind::kCreate, .length = 1};
  create.name[0] = 'w';
  Say(*wire, create);
  EXPECT_EQ(Hear(*wire).verdict, Verdict::kDone);
  EXPECT_THROW(Hear(*before), WireBroken);
  std::this_thread::sleep_for(std::chrono::duration<double>(3 * kAway_s));
  EXPECT_TRUE(box.store().FindSession(77));
  Say(*wire, {.kind = WordKind::kFetchAdd, .region = 9, .number = 1});
  EXPECT_EQ(Hear(*wire).verdict, Verdict::kRefused);
  const auto memory = ConnectTcp({.meet = door.address(), .timeout_s = kTimeout_s});  // goes on
  EXPECT_EQ(memory->Open("w", After(0)).length, 1u);
}

// A sender whose connection ends inside what it says is named and counted, and nothing of it is
// there; one that leaves between two words is not.
TEST(TcpMemory, HalfAWordIsForgotten) {
  Told told;
  MemoryBox box(kSetup);
  MemoryDoor door(box, {.refused = told.Listen()});
  const auto memory = ConnectTcp({.meet = door.address(), .timeout_s = kTimeout_s});
  const Region region = memory->Create("w", RegionType::kF32, 100);
  const Word add{.kind = WordKind::kAccumulate, .region = 0, .number = 1, .length = 100};
  const auto bytes = std::as_bytes(std::span(&add, 1));
  const std::string ones(400, '\1');
  uint64_t refused = 0;
  Dial(door.address(), 50);
  for (const size_t values : {size_t{0}, size_t{1}, size_t{399}}) {
    const auto wire = Dial(door.address(), 70 + values);
    wire->Write(bytes, std::as_bytes(std::span(ones)).first(values), After(kTimeout_s));
    ++refused;
  }
  for (const size_t part : {size_t{1}, sizeof(Word) - 1}) {
    Dial(door.address(), 60 + part)->Write(bytes.first(part), {}, After(kTimeout_s));
    ++refused;
  }
  while (box.store().Look().refused < refused) std::this_thread::yield();
  told.Await("the connection ended in the middle of a word");
  std::vector<float> got(100);
  uint64_t version = 7;
  memory->Get(region, 0, got, &version).Wait();
  EXPECT_EQ(got, std::vector<float>(100));
  EXPECT_EQ(version, 0u);
  EXPECT_EQ(box.store().Look().refused, refused);
}

// The words of long values, said by somebody who does not know them.
TEST(TcpMemory, BadWordsOfLongValuesEndOnlyTheirSender) {
  Told told;
  MemoryBox box(kSetup);
  MemoryDoorSetup setup = Offering();
  setup.refused = told.Listen();
  MemoryDoor door(box, setup);
  const auto memory = ConnectTcp({.meet = door.address(), .secret = "s", .timeout_s = kTimeout_s});
  const Region region = memory->Create("w", RegionType::kF32, 100);
  auto wire = Dial(door.address(), 77, "s");
  const Word get{.kind = WordKind::kGet, .region = 0, .length = 100, .runs = kByBulk};
  for (const Word& word : {Word{.kind = WordKind::kSlot, .region = 0, .length = 100},
                           get,
                           {.kind = WordKind::kRelease}}) {
    Say(*wire, word);  // nobody has an end yet
    EXPECT_EQ(Hear(*wire).verdict, Verdict::kNoBulk);
  }
  const auto refused = [&](const Word& word, std::string_view rest, std::string_view part) {
    Say(*wire, word, rest);
    const Reply answer = Hear(*wire);
    EXPECT_EQ(answer.verdict, Verdict::kRefused);
    const std::string text(TextOf(answer));
    EXPECT_TRUE(Has(text, part)) << text;
  };
  refused({.kind = WordKind::kBulk, .length = 7}, "nowhere", "'nowhere' is no address");
  std::string greeting;
  Say(*wire, {.kind = WordKind::kBulk, .length = 4}, "here");
  EXPECT_EQ(Hear(*wire, &greeting).verdict, Verdict::kDone);
  EXPECT_EQ(greeting.size(), sizeof(BulkPlace) + 4);
  refused({.kind = WordKind::kSlot, .region = 9, .length = 1}, "", "no region number 9");
  refused({.kind = WordKind::kSlot, .region = 0, .length = 101}, "",
          "beyond the end of region 'w'");
  refused({.kind = WordKind::kSlot, .region = 0, .offset = ~uint64_t{0}, .length = 2}, "",
          "beyond the end of region 'w'");
  Word beyond = get;
  beyond.offset = 1;
  refused(beyond, "", "beyond the end of region 'w'");
  refused({.kind = WordKind::kPut, .region = 0, .number = 1, .length = 100, .runs = kByBulk}, "",
          "do not fit into the client's slot");
  Say(*wire, {.kind = WordKind::kBulk, .length = 1025});
  EXPECT_THROW(Hear(*wire), WireBroken);
  told.Await("an address of 1025 bytes");
  memory->Accumulate(region, 0, std::vector<float>(100, 1)).Wait();
  EXPECT_EQ(memory->Wait(region, 1, After(kTimeout_s)), 1u);
}

// Who holds a region to read it and then says something else, or nothing more, keeps nobody from
// changing it.
TEST(TcpMemory, AHeldRegionIsLetGo) {
  constexpr double kSoon_s = 10;  // a box that waits for the reader ends its session then
  MemoryBox box({.timeout_s = kSoon_s});
  MemoryDoor door(box, Offering());
  const auto memory = ConnectTcp({.meet = door.address(), .secret = "s", .timeout_s = kTimeout_s});
  const Region region = memory->Create("w", RegionType::kF32, 1);
  const std::vector<float> one(1, 1);
  const auto hold = [&](uint64_t client) {
    auto wire = Dial(door.address(), client, "s");
    std::string rest;
    Say(*wire, {.kind = WordKind::kBulk, .length = 4}, "here");
    EXPECT_EQ(Hear(*wire, &rest).verdict, Verdict::kDone);
    Say(*wire, {.kind = WordKind::kGet, .region = 0, .length = 1, .runs = kByBulk});
    EXPECT_EQ(Hear(*wire, &rest).verdict, Verdict::kDone);
    return wire;
  };
  const auto changes = hold(77);
  Say(*changes, {.kind = WordKind::kAccumulate, .region = 0, .number = 1, .length = 1},
      std::string(4, '\0'));
  EXPECT_EQ(Hear(*changes).version, 1u);
  Say(*changes, {.kind = WordKind::kRelease});
  EXPECT_EQ(Hear(*changes).value, 0);  // what it has read may be of two versions
  const auto stops = hold(78);
  const Word half{.kind = WordKind::kRelease};
  stops->Write(std::as_bytes(std::span(&half, 1)).first(100), {}, After(kTimeout_s));
  memory->Accumulate(region, 0, one).Wait();
  EXPECT_EQ(memory->Wait(region, 2, After(kTimeout_s)), 2u);
  EXPECT_TRUE(box.store().FindSession(77));
  EXPECT_TRUE(box.store().FindSession(78));
}

TEST(TcpMemory, SaysWhatABoxHolds) {
  MemoryBox box(kSetup);
  MemoryDoor door(box, {});
  const auto memory = ConnectTcp({.meet = door.address(), .timeout_s = kTimeout_s});
  const Region region = memory->Create("weights", RegionType::kF32, 1234);
  memory->Accumulate(region, 0, std::vector<float>(1234, 1)).Wait();
  const std::string text = FetchMemoryStatus({.meet = door.address(), .timeout_s = kTimeout_s});
  EXPECT_TRUE(Has(text, "1 region, 2 clients, 1 change made")) << text;
  EXPECT_TRUE(Has(text, "weights: 1,234 f32 values, version 1\n")) << text;
}

}  // namespace
}  // namespace trireme
