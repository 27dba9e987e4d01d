#include "transport/memory/box.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <thread>

#include "base/files.h"
#include "transport/check/what_of.h"
#include "transport/memory/mapped.h"

namespace trireme {
namespace {

constexpr double kPatience_s = 60;  // for what must happen

// A process that is killed, or ends by itself with 0 where all was well.
class Child {
 public:
  explicit Child(const std::function<void()>& life) : pid_(fork()) {
    if (pid_ != 0) return;
    try {
      life();
      _exit(testing::Test::HasFailure() ? 2 : 0);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "child: %s\n", error.what());
      _exit(3);
    }
  }
  ~Child() {
    if (pid_ > 0) Kill();
  }
  void Kill() {
    kill(pid_, SIGKILL);
    Join();
  }
  void AwaitStop() const {
    int status = 0;
    waitpid(pid_, &status, WUNTRACED);
    EXPECT_TRUE(WIFSTOPPED(status));
  }
  void Continue() const { kill(pid_, SIGCONT); }
  int Join() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

 private:
  pid_t pid_;
};

// Values that are all alike, and which.
float Common(Memory& memory, const Region& region, uint64_t* version = nullptr) {
  std::vector<float> values(region.length);
  memory.Get(region, 0, values, version).Wait();
  for (const float value : values) EXPECT_EQ(value, values[0]);
  return values[0];
}

TEST(MemoryBox, ALockEndsWithItsOwnersMemory) {
  MemoryBox box(MemoryBoxSetup{});
  const auto memory = box.Connect();
  const Region region = memory->Create("w", RegionType::kF32, 10);
  {
    const auto other = box.Connect();
    EXPECT_TRUE(other->Lock(other->Open("w", After(0)), After(0)));
    EXPECT_FALSE(memory->Lock(region, After(0)));
  }
  EXPECT_TRUE(memory->Lock(region, After(kPatience_s)));
}

TEST(MemoryBox, ALockEndsWithItsOwnersProcess) {
  const auto image = MemoryImage::Anonymous(4 << 20);
  int has_it[2];
  ASSERT_EQ(pipe(has_it), 0);
  Child owner([&] {
    const auto memory = ConnectMapped(image, kPatience_s);
    const Region region = memory->Create("w", RegionType::kF32, 10);
    if (!memory->Lock(region, After(kPatience_s))) _exit(4);
    static_cast<void>(write(has_it[1], "!", 1));
    for (;;) pause();
  });
  MemoryBox box(image, {});
  char word = 0;
  ASSERT_EQ(read(has_it[0], &word, 1), 1);
  const auto memory = box.Connect();
  const Region region = memory->Open("w", After(kPatience_s));
  EXPECT_FALSE(memory->Lock(region, After(0)));
  EXPECT_EQ(box.store().Look().clients, 2);
  owner.Kill();
  EXPECT_TRUE(memory->Lock(region, After(kPatience_s)));
  close(has_it[0]);
  close(has_it[1]);
}

// A process that is stopped while it reads: others change the region soon, and it reads again.
TEST(MemoryBox, AStoppedReaderHoldsNobodyUpAndReadsAgain) {
  const auto image = MemoryImage::Anonymous(4 << 20);
  MemoryBox box(image, {.timeout_s = 1e6});
  const auto memory = box.Connect();
  const Region region = memory->Create("w", RegionType::kF32, 1000);
  Child reader([&] {
    const uint64_t client = NewNumber();
    const uint32_t session = ClaimSession(image->header(), client);
    image->session(session).born.store(OwnProcess().born);
    image->session(session).pid.store(OwnProcess().pid);
    ReadLock read(*image, session, client, uint32_t(region.number), After(kPatience_s));
    raise(SIGSTOP);
    if (read.Release()) _exit(4);  // what it has read may be of two versions
    ReadLock again(*image, session, client, uint32_t(region.number), After(kPatience_s));
    if (!again.Release()) _exit(5);
  });
  reader.AwaitStop();
  memory->Accumulate(region, 0, std::vector<float>(1000, 1)).Wait();
  EXPECT_EQ(Common(*memory, region), 1);
  EXPECT_EQ(box.store().Look().clients, 2);  // it is only slow
  reader.Continue();
  EXPECT_EQ(reader.Join(), 0);
}

// Clients that are killed anywhere inside their adds: each add is there or not, none in part.
TEST(MemoryBox, AClientThatIsKilledHasAddedAllOrNothing) {
  const auto image = MemoryImage::Anonymous(size_t{32} << 20);
  std::vector<std::unique_ptr<Child>> clients;
  for (int c = 0; c < 3; ++c) {
    clients.push_back(std::make_unique<Child>([&] {
      const auto memory = ConnectMapped(image, kPatience_s);
      const Region region = memory->Create("w", RegionType::kF32, 100'000);
      const std::vector<float> ones(region.length, 1);
      for (;;) memory->Accumulate(region, 0, ones).Wait();
    }));
  }
  MemoryBox box(image, {.threads = 2});
  const auto memory = box.Connect();
  const Region region = memory->Open("w", After(kPatience_s));
  uint64_t version = 0;
  for (auto& client : clients) {
    version = memory->Wait(region, version + 20, After(kPatience_s));
    client->Kill();
    uint64_t now = 0;
    const float common = Common(*memory, region, &now);
    EXPECT_EQ(common, float(now));
  }
  while (box.store().Look().clients > 1) memory->Wait(region, ~uint64_t{0}, After(0.01));
  const float common = Common(*memory, region, &version);
  EXPECT_EQ(common, float(version));
  EXPECT_EQ(memory->Notes(region, version - 10).size(), 10u);
}

// The box's process is killed and another one goes on with the same memory; the clients hear
// nothing of it, and every add is there once.
TEST(MemoryBox, TheNextBoxFinishesWhatAKilledOneBegan) {
  constexpr int kClients = 3, kAdds = 60;
  const auto image = MemoryImage::Anonymous(size_t{32} << 20);
  const auto serve = [&] {
    return std::make_unique<Child>([&] {
      MemoryBox box(image, {.threads = 2});
      for (;;) pause();
    });
  };
  auto box = serve();
  std::vector<std::unique_ptr<Child>> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.push_back(std::make_unique<Child>([&] {
      const auto memory = ConnectMapped(image, kPatience_s);
      const Region region = memory->Create("w", RegionType::kF32, 300'000);
      const Region counter = memory->Create("n", RegionType::kI64, 1);
      const std::vector<float> ones(region.length, 1);
      for (int i = 0; i < kAdds; ++i) {
        memory->Accumulate(region, 0, ones).Wait();
        memory->FetchAdd(counter, 0, 1);
      }
    }));
  }
  const auto memory = ConnectMapped(image, kPatience_s);
  const Region region = memory->Open("w", After(kPatience_s));
  for (uint64_t v : {3u, 20u, 21u, 50u, 51u, 90u}) {
    memory->Wait(region, v, After(kPatience_s));
    box->Kill();
    box = serve();
  }
  for (auto& client : clients) EXPECT_EQ(client->Join(), 0);
  uint64_t version = 0;
  EXPECT_EQ(Common(*memory, region, &version), float(kClients * kAdds));
  EXPECT_EQ(version, uint64_t(kClients * kAdds));
  EXPECT_EQ(memory->FetchAdd(memory->Open("n", After(0)), 0, 0), kClients * kAdds);
}

// What a killed box leaves in the middle of an add: one piece added, one begun, one untouched.
TEST(MemoryBox, AnAddIsFinishedFromWhereItStood) {
  constexpr uint64_t kValues = kPiece / sizeof(float), kLength = 3 * kValues - 7;
  const auto image = MemoryImage::Anonymous(size_t{16} << 20);
  const auto memory = ConnectMapped(image, kPatience_s);
  std::optional<MemoryBox> box(std::in_place, image, MemoryBoxSetup{});
  const Region region = memory->Create("w", RegionType::kF32, kLength);
  memory->Accumulate(region, 0, std::vector<float>(kLength, 10)).Wait();
  box.reset();
  BoxHeader& head = image->header();
  Journal& journal = head.journal;
  auto* const values = reinterpret_cast<float*>(image->at(image->region(0).data));
  auto* const slot = reinterpret_cast<float*>(image->at(image->session(0).slot));
  for (uint64_t i = 0; i < kLength; ++i) slot[i] = 1;
  journal.word.number = 2;  // the rest of the word is as before
  std::memcpy(journal.word.note, "lease", 5);
  journal.word.note_bytes = 5;
  journal.version = 2;
  std::fill(values, values + kValues, 11.0f);
  for (int piece : {0, 1, 2}) image->added()[piece].store(piece == 0);
  Aside& aside = head.aside[3];
  aside.piece.store(2);
  auto* const kept = reinterpret_cast<float*>(aside.values);
  std::fill(kept, kept + kValues, 10.0f);
  std::fill(values + kValues, values + kValues + 100, 11.0f);  // half of it
  journal.running.store(1);
  image->Validate();
  box.emplace(image, MemoryBoxSetup{});
  uint64_t version = 0;
  EXPECT_EQ(Common(*memory, region, &version), 11);
  EXPECT_EQ(version, 2u);
  const RegionNote note = memory->Notes(region, 1).at(0);
  EXPECT_EQ(note.number, 2u);
  EXPECT_EQ(std::memcmp(note.note.data(), "lease", 5), 0);
  // The client that had asked for it asks again, and hears that it is done.
  const Reply again = box->store().Do(0, journal.word);
  EXPECT_EQ(again.verdict, Verdict::kDone);
  EXPECT_EQ(again.version, 2u);
  EXPECT_EQ(Common(*memory, region), 11);
}

// Killed before, between and after the two stores of a put that swaps region and slot.
TEST(MemoryBox, APutIsFinishedFromWhereItStood) {
  constexpr uint64_t kLength = 5000;
  for (const int stores : {0, 1, 2}) {
    const auto image = MemoryImage::Anonymous(size_t{16} << 20);
    const auto memory = ConnectMapped(image, kPatience_s);
    std::optional<MemoryBox> box(std::in_place, image, MemoryBoxSetup{});
    const Region region = memory->Create("w", RegionType::kF32, kLength);
    memory->Put(region, 0, std::vector<float>(kLength, 1)).Wait();
    box.reset();
    RegionRecord& record = image->region(0);
    SessionRecord& session = image->session(0);
    auto* const slot = reinterpret_cast<float*>(image->at(session.slot));
    std::fill(slot, slot + kLength, 2.0f);
    Journal& journal = image->header().journal;
    ASSERT_TRUE(journal.swaps);
    journal.word.number = 2;
    journal.version = 2;
    journal.new_data = session.slot;
    journal.new_slot = record.data;
    if (stores > 0) record.data = journal.new_data;
    if (stores > 1) session.slot = journal.new_slot;
    journal.running.store(1);
    image->Validate();
    box.emplace(image, MemoryBoxSetup{});
    EXPECT_EQ(Common(*memory, region), 2) << stores;
    EXPECT_NE(record.data, session.slot);
    const auto other = box->Connect();  // whose changes the journal does not know
    other->Accumulate(region, 0, std::vector<float>(kLength, 5)).Wait();
    EXPECT_EQ(Common(*memory, region), 7) << stores;
  }
}

TEST(MemoryBox, EndsForItsClients) {
  std::optional<MemoryBox> box(std::in_place, MemoryBoxSetup{});
  const auto memory = box->Connect();
  const Region region = memory->Create("w", RegionType::kF32, 10);
  box.reset();
  EXPECT_TRUE(Has(WhatOf([&] { memory->Create("v", RegionType::kF32, 10); }), "box has ended"));
  EXPECT_TRUE(Has(WhatOf([&] { memory->Wait(region, 1, After(kPatience_s)); }), "box has ended"));
}

// What was posted is made when there is a box again, with the values that it came with.
TEST(MemoryBox, AWordThatIsNotAnsweredKeepsItsValues) {
  const auto image = MemoryImage::Anonymous(4 << 20);
  std::optional<MemoryBox> box(std::in_place, image, MemoryBoxSetup{});
  const auto memory = box->Connect();
  const Region region = memory->Create("w", RegionType::kF32, 10);
  memory->Accumulate(region, 0, std::vector<float>(10, 1)).Wait();
  box.reset();
  EXPECT_THROW(memory->Accumulate(region, 0, std::vector<float>(10, 2)).Wait(), PeerLost);
  EXPECT_THROW(memory->Accumulate(region, 0, std::vector<float>(10, 4)).Wait(), PeerLost);
  box.emplace(image, MemoryBoxSetup{});
  const auto other = box->Connect();
  EXPECT_EQ(other->Wait(other->Open("w", After(0)), 2, After(kPatience_s)), 2u);
  EXPECT_EQ(Common(*other, region), 3);
}

// Nothing is done in the name of the client that has its session now.
TEST(MemoryBox, AClientWhoseSessionHasEndedSaysNothing) {
  MemoryBox box{MemoryBoxSetup{}};
  const auto first = box.Connect();
  const Region region = first->Create("n", RegionType::kI64, 1);
  box.store().EndSession(0);
  const auto second = box.Connect();
  ASSERT_EQ(box.store().FindSession(second->client()), 0u);
  EXPECT_THROW(first->FetchAdd(region, 0, 10), PeerLost);
  while (box.store().image().session(0).posted.load()) std::this_thread::yield();
  EXPECT_EQ(second->FetchAdd(region, 0, 1), 0);
  EXPECT_EQ(second->FetchAdd(region, 0, 1), 1);
}

TEST(MemoryBox, RoomThatIsLeftIsGivenAgain) {
  MemoryBox box({.bytes = size_t{8} << 20});
  constexpr uint64_t kLength = 400'000;  // 1.6 MB, and a ring of 0.3 MB
  const auto first = box.Connect();
  const Region region = first->Create("w", RegionType::kF32, kLength);
  for (int i = 0; i < 20; ++i) {  // each takes a slot
    const auto client = box.Connect();
    client->Accumulate(client->Open("w", After(0)), 0, std::vector<float>(kLength, 1)).Wait();
  }
  EXPECT_EQ(Common(*first, region), 20);
  const std::string full = WhatOf([&] { first->Create("more", RegionType::kF32, 2'000'000); });
  EXPECT_TRUE(Has(full, "no room for 7.6 MiB")) << full;
  const Region small = first->Create("small", RegionType::kF32, 200'000);
  EXPECT_EQ(Common(*first, small), 0);  // where slots have been
  EXPECT_EQ(box.store().Look().refused, 1u);
}

TEST(MemoryBox, AClientWhoseNewSlotHadNoRoomTakesAnotherOne) {
  MemoryBox box({.bytes = size_t{8} << 20});
  constexpr uint64_t kSmall = 1000, kLarge = 1'200'000;  // 4 KB; 4.8 MB: once, but not twice
  const auto memory = box.Connect();
  const Region small = memory->Create("small", RegionType::kF32, kSmall);
  memory->Put(small, 0, std::vector<float>(kSmall, 1)).Wait();
  const Region large = memory->Create("large", RegionType::kF32, kLarge);
  const std::vector<float> values(kLarge, 1);
  const std::string full = WhatOf([&] { memory->Put(large, 0, values).Wait(); });
  EXPECT_TRUE(Has(full, "no room")) << full;
  const Region other = memory->Create("other", RegionType::kF32, kSmall);  // where the slot was
  memory->Put(small, 0, std::vector<float>(kSmall, 2)).Wait();
  EXPECT_EQ(Common(*memory, small), 2);
  EXPECT_EQ(Common(*memory, other), 0);
}

TEST(MemoryBox, TakesSoManyClients) {
  const auto image = MemoryImage::Anonymous(1 << 16);
  std::vector<std::unique_ptr<Memory>> clients;
  for (uint32_t i = 0; i < kMostSessions; ++i) clients.push_back(ConnectMapped(image, 1));
  EXPECT_TRUE(Has(WhatOf([&] { ConnectMapped(image, 1); }), "256 clients already"));
  MemoryBox box(image, {});
  clients.clear();
  while (box.store().Look().clients > 0) std::this_thread::yield();
}

}  // namespace
}  // namespace trireme
