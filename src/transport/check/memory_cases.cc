#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <numeric>
#include <set>
#include <thread>

#include "base/error.h"
#include "transport/check/conformance.h"
#include "transport/check/what_of.h"
#include "transport/collective/broadcast.h"
#include "transport/memory.h"

namespace trireme {
namespace {

constexpr Tag kTag = 5;
constexpr double kPatience_s = 60;  // for what must happen

std::vector<std::byte> NoteOf(int64_t a, int64_t b) {
  std::vector<std::byte> note(16);
  std::memcpy(note.data(), &a, 8);
  std::memcpy(note.data() + 8, &b, 8);
  return note;
}

int64_t NoteAt(const RegionNote& note, size_t index) {
  int64_t value = 0;
  if (note.note.size() >= 8 * (index + 1)) std::memcpy(&value, note.note.data() + 8 * index, 8);
  return value;
}

void ARegionIsMadeOnceAndOpenedByAll(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("w", RegionType::kF32, 1000);
  EXPECT_EQ(region.length, 1000u);
  EXPECT_EQ(region.incarnation, memory.incarnation());
  const Region again = memory.Open("w", After(kPatience_s));
  EXPECT_EQ(again.number, region.number);
  EXPECT_EQ(again.length, 1000u);
  std::vector<float> values(1000, 5);
  uint64_t version = 7;
  memory.Get(region, 0, values, &version).Wait();
  EXPECT_EQ(values, std::vector<float>(1000));
  EXPECT_EQ(version, 0u);
  const std::string length = WhatOf([&] { memory.Create("w", RegionType::kF32, 999); });
  EXPECT_TRUE(Has(length, "'w' has 1000 f32 values, not 999 f32")) << length;
  const std::string type = WhatOf([&] { memory.Create("w", RegionType::kI64, 1000); });
  EXPECT_TRUE(Has(type, "'w' has 1000 f32 values, not 1000 i64")) << type;
  EXPECT_TRUE(Has(WhatOf([&] { memory.Open("nowhere", After(0)); }), "no region 'nowhere'"));
  Barrier(world.group(), kTag);
  if (world.rank() == 1) memory.Create("late", RegionType::kI64, 3);
  EXPECT_EQ(memory.Open("late", After(kPatience_s)).length, 3u);  // waits for rank 1
}

void WhatIsPutIsGot(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("w", RegionType::kF32, 300'007);
  std::vector<float> values(region.length);
  std::iota(values.begin(), values.end(), 1.0f);
  if (world.rank() == 0) {
    uint64_t version = 0;
    memory.Put(region, 0, values, {}, &version).Wait();
    EXPECT_EQ(version, 1u);
    const std::vector<float> part(1234, -1);
    memory.Put(region, 100'000, part, {}, &version).Wait();
    EXPECT_EQ(version, 2u);
  }
  EXPECT_EQ(memory.Wait(region, 2, After(kPatience_s)), 2u);
  std::fill(values.begin() + 100'000, values.begin() + 101'234, -1.0f);
  std::vector<float> got(region.length);
  uint64_t version = 0;
  memory.Get(region, 0, got, &version).Wait();
  EXPECT_EQ(version, 2u);
  EXPECT_TRUE(got == values);
  std::vector<float> middle(5);
  memory.Get(region, 101'232, middle).Wait();
  EXPECT_EQ(middle, (std::vector<float>{-1, -1, 101'235, 101'236, 101'237}));
  memory.Get(region, region.length, std::span<float>()).Wait();  // nothing, at the end
}

void WholeNumbersAreThere(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("n", RegionType::kI64, 5);
  const std::vector<int64_t> values{1, -2, std::numeric_limits<int64_t>::max(), 0, 9};
  if (world.rank() == 1) memory.Put(region, 0, values).Wait();
  memory.Wait(region, 1, After(kPatience_s));
  std::vector<int64_t> got(5);
  memory.Get(region, 0, got).Wait();
  EXPECT_EQ(got, values);
}

// Whole numbers are exact in any order, so the sum says whether each add is there once.
void AddsOfAllAreThereOnce(World& world) {
  constexpr int kAdds = 20;
  Memory& memory = *world.memory();
  const Region region = memory.Create("w", RegionType::kF32, 50'021);
  std::vector<float> values(region.length);
  for (int i = 0; i < kAdds; ++i) {
    std::iota(values.begin(), values.end(), float(world.rank() + i));
    memory.Accumulate(region, 0, values, NoteOf(world.rank(), i)).Wait();
  }
  const uint64_t all = uint64_t(kAdds) * uint64_t(world.size());
  EXPECT_EQ(memory.Wait(region, all, After(kPatience_s)), all);
  memory.Get(region, 0, values).Wait();
  const float start = float(kAdds * world.size() * (world.size() - 1 + kAdds - 1)) / 2;
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(values[i], start + float(all) * float(i)) << i;
  }
  // The ring has each of them, in the order of versions and of each client.
  const std::vector<RegionNote> notes = memory.Notes(region, 0);
  ASSERT_EQ(notes.size(), all);
  std::vector<int64_t> next(size_t(world.size()));
  std::vector<uint64_t> clients(size_t(world.size()));
  for (uint64_t v = 0; v < all; ++v) {
    EXPECT_EQ(notes[v].version, v + 1);
    const auto rank = size_t(NoteAt(notes[v], 0));
    ASSERT_LT(rank, next.size());
    EXPECT_EQ(NoteAt(notes[v], 1), next[rank]++);
    EXPECT_EQ(notes[v].number, uint64_t(next[rank]));
    if (next[rank] > 1) {
      EXPECT_EQ(notes[v].client, clients[rank]);
    }
    clients[rank] = notes[v].client;
  }
  EXPECT_EQ(clients[size_t(world.rank())], memory.client());
  EXPECT_EQ(std::set<uint64_t>(clients.begin(), clients.end()).size(), clients.size());
  EXPECT_TRUE(memory.Notes(region, all).empty());
  const std::vector<RegionNote> last = memory.Notes(region, all - 3, 2);
  ASSERT_EQ(last.size(), 2u);
  EXPECT_EQ(last[1].version, all - 1);
}

// Values, version and notes are one change: whoever reads finds all values as of one version.
void NobodySeesHalfOfAnAdd(World& world) {
  constexpr int kAdds = 30;
  Memory& memory = *world.memory();
  const Region region = memory.Create("w", RegionType::kF32, 200'003);
  if (world.rank() > 0) {
    for (int i = 0; i < kAdds; ++i) {
      const float amount = float(i % 3 + world.rank());
      const std::vector<float> values(region.length, amount);
      memory.Accumulate(region, 0, values, NoteOf(int64_t(amount), 0)).Wait();
    }
    return;
  }
  const uint64_t all = uint64_t(kAdds) * uint64_t(world.size() - 1);
  std::vector<float> got(region.length);
  for (uint64_t version = 0; version < all;) {
    memory.Wait(region, version + 1, After(kPatience_s));
    memory.Get(region, 0, got, &version).Wait();
    int64_t sum = 0;
    for (const RegionNote& note : memory.Notes(region, 0)) {
      if (note.version <= version) sum += NoteAt(note, 0);
    }
    ASSERT_EQ(std::set<float>(got.begin(), got.end()), std::set<float>{float(sum)}) << version;
  }
}

void FetchAddGivesEachNumberOnce(World& world) {
  constexpr int64_t kEach = 50;
  Memory& memory = *world.memory();
  const Region counter = memory.Create("counter", RegionType::kI64, 2);
  const Region taken = memory.Create("taken", RegionType::kI64, uint64_t(kEach * world.size()));
  for (int64_t i = 0; i < kEach; ++i) {
    const int64_t own = memory.FetchAdd(counter, 1, 1);
    ASSERT_TRUE(own >= 0 && uint64_t(own) < taken.length) << own;
    EXPECT_EQ(memory.FetchAdd(taken, uint64_t(own), 1), 0);
  }
  const auto all = int64_t(taken.length);
  memory.Wait(taken, taken.length, After(kPatience_s));
  std::vector<int64_t> values(taken.length), counters(2);
  memory.Get(taken, 0, values).Wait();
  EXPECT_EQ(values, std::vector<int64_t>(taken.length, 1));
  memory.Get(counter, 0, counters).Wait();
  EXPECT_EQ(counters, (std::vector<int64_t>{0, all}));
}

void OneOfAllSwaps(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("chief", RegionType::kI64, 1);
  const int64_t mine = 100 + world.rank();
  const int64_t before = memory.CompareSwap(region, 0, 0, mine);
  std::vector<int64_t> now(1);
  memory.Get(region, 0, now).Wait();
  EXPECT_EQ(now[0], before == 0 ? mine : before);
  const auto chiefs = AllGather(world.group(), kTag, now[0]);
  for (const int64_t chief : chiefs) EXPECT_EQ(chief, now[0]);
}

void AWaitEndsAtItsDeadline(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("w", RegionType::kF32, 10);
  EXPECT_EQ(memory.Wait(region, 1, After(0.01)), 0u);
  Barrier(world.group(), kTag);
  if (world.rank() == 0) {
    memory.Accumulate(region, 0, std::vector<float>(10, 1)).Wait();
  }
  EXPECT_EQ(memory.Wait(region, 1, After(kPatience_s)), 1u);
}

void WhatCannotBeIsRefusedAndAllGoesOn(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("w", RegionType::kF32, 100);
  const Region numbers = memory.Create("n", RegionType::kI64, 4);
  std::vector<float> values(100, 1), more(101, 1);
  const auto refused = [&](std::string_view part, FunctionRef<void()> fn) {
    const std::string text = WhatOf(fn);
    EXPECT_TRUE(Has(text, part)) << "wanted: " << part << "\ngot: " << text;
  };
  const auto add = [&](uint64_t offset, std::span<const float> what, size_t note = 0) {
    memory.Accumulate(region, offset, what, std::vector<std::byte>(note)).Wait();
  };
  refused("beyond the end of region 'w'", [&] { add(0, more); });
  refused("beyond the end of region 'w'", [&] { add(1, values); });
  refused("beyond the end of region 'w'", [&] { add(~uint64_t{0}, values); });
  refused("beyond the end of region 'w'", [&] { memory.Get(region, 50, more).Wait(); });
  refused("beyond the end of region 'w'", [&] { memory.Put(region, 101, values).Wait(); });
  refused("beyond the end of region 'n'", [&] { memory.FetchAdd(numbers, 4, 1); });
  refused("'w' holds f32 values, not i64", [&] { memory.FetchAdd(region, 0, 1); });
  std::vector<int64_t> whole(4);
  refused("'w' holds f32 values, not i64", [&] { memory.Get(region, 0, whole).Wait(); });
  refused("'n' holds i64 values, not f32", [&] { memory.Put(numbers, 0, values).Wait(); });
  refused("a note of 257 bytes is too long", [&] { add(0, values, 257); });
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    values[61] = bad;
    refused("not finite", [&] { add(0, values); });
    values[61] = 1;
  }
  refused("a region's name", [&] { memory.Create(std::string(64, 'a'), RegionType::kF32, 1); });
  refused("a region's name", [&] { memory.Create("", RegionType::kF32, 1); });
  refused("a region's name", [&] { memory.Create("a\nb", RegionType::kF32, 1); });
  refused("no room", [&] { memory.Create("huge", RegionType::kF32, uint64_t{1} << 40); });
  refused("no room", [&] { memory.Create("huge", RegionType::kI64, ~uint64_t{0}); });
  refused("at least 1", [&] { memory.Create("none", RegionType::kF32, 0); });
  Barrier(world.group(), kTag);
  EXPECT_EQ(memory.Wait(region, 0, After(0)), 0u);  // nothing has changed
  Barrier(world.group(), kTag);
  add(0, values, 256);
  const auto ranks = uint64_t(world.size());
  EXPECT_EQ(memory.Wait(region, ranks, After(kPatience_s)), ranks);
  memory.Get(region, 0, values).Wait();
  EXPECT_EQ(values, std::vector<float>(100, float(ranks)));
}

void ALockBelongsToOne(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("n", RegionType::kI64, 1);
  std::vector<int64_t> value(1);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(memory.Lock(region, After(kPatience_s)));
    memory.Get(region, 0, value).Wait();  // two steps, that the lock makes one
    ++value[0];
    memory.Put(region, 0, value).Wait();
    memory.Unlock(region);
  }
  Barrier(world.group(), kTag);
  memory.Get(region, 0, value).Wait();
  EXPECT_EQ(value[0], 10 * world.size());
  if (world.rank() == 1) {
    EXPECT_TRUE(memory.Lock(region, After(0)));
  }
  Barrier(world.group(), kTag);
  if (world.rank() != 1) {
    EXPECT_FALSE(memory.Lock(region, After(0.01)));
    EXPECT_TRUE(Has(WhatOf([&] { memory.Unlock(region); }), "another client has the lock"));
  }
  Barrier(world.group(), kTag);
  if (world.rank() == 1) memory.Unlock(region);
  if (world.rank() == 0) {
    EXPECT_TRUE(memory.Lock(region, After(kPatience_s)));
    memory.Unlock(region);
  }
}

void ADroppedTicketHasItsValues(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("w", RegionType::kF32, 20'000);
  for (int i = 0; i < 20; ++i) {
    memory.Accumulate(region, 0, std::vector<float>(20'000, 1));  // the vector dies right after
  }
  std::vector<float> got(20'000);
  const auto all = uint64_t(20 * world.size());
  memory.Wait(region, all, After(kPatience_s));
  memory.Get(region, 0, got).Wait();
  EXPECT_EQ(got, std::vector<float>(20'000, float(all)));
}

void SeveralTicketsKeepTheirOrder(World& world) {
  Memory& memory = *world.memory();
  const Region a = memory.Create("a" + std::to_string(world.rank()), RegionType::kF32, 70'000);
  const Region b = memory.Create("b" + std::to_string(world.rank()), RegionType::kF32, 10);
  std::vector<std::vector<float>> values;
  for (int i = 0; i < 40; ++i) values.emplace_back(i % 2 ? 10 : 70'000, float(i));
  std::vector<uint64_t> versions(40);
  {
    std::vector<Ticket> tickets;
    for (int i = 0; i < 40; ++i) {
      tickets.push_back(memory.Put(i % 2 ? b : a, 0, std::span<const float>(values[size_t(i)]), {},
                                   &versions[size_t(i)]));
    }
    for (Ticket& ticket : tickets) ticket.Wait();
  }
  for (size_t i = 0; i < 40; ++i) EXPECT_EQ(versions[i], i / 2 + 1);
  std::vector<float> got(10);
  memory.Get(a, 69'990, got).Wait();
  EXPECT_EQ(got, std::vector<float>(10, 38));
  memory.Get(b, 0, got).Wait();
  EXPECT_EQ(got, std::vector<float>(10, 39));
}

void ThreadsOfARankShareAMemory(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("w", RegionType::kF32, 1000);
  const Region counter = memory.Create("n", RegionType::kI64, 1);
  const auto work = [&] {
    for (int i = 0; i < 20; ++i) {
      memory.Accumulate(region, 0, std::vector<float>(1000, 1)).Wait();
      memory.FetchAdd(counter, 0, 1);
    }
  };
  {
    std::jthread waits([&] {
      const auto all = uint64_t(40 * world.size());
      EXPECT_EQ(memory.Wait(region, all, After(kPatience_s)), all);
    });
    std::jthread other(work);
    work();
  }
  memory.Wait(counter, uint64_t(40 * world.size()), After(kPatience_s));
  std::vector<float> got(1000);
  memory.Get(region, 0, got).Wait();
  EXPECT_EQ(got, std::vector<float>(1000, float(40 * world.size())));
  EXPECT_EQ(memory.FetchAdd(counter, 0, 0), 40 * world.size());
}

void TheRingSaysWhatItNoLongerKeeps(World& world) {
  Memory& memory = *world.memory();
  const Region counter = memory.Create("n", RegionType::kI64, 1);
  if (world.rank() == 0) {
    for (uint64_t i = 0; i < kKeptNotes + 2; ++i) memory.FetchAdd(counter, 0, 1);
    EXPECT_TRUE(Has(WhatOf([&] { memory.Notes(counter, 1); }), "those after 1 are gone"));
    EXPECT_EQ(memory.Notes(counter, 2).size(), kKeptNotes);
    EXPECT_EQ(memory.Notes(counter, 2, 1)[0].version, 3u);
  }
}

void AnAddMayDependOnANumber(World& world) {
  Memory& memory = *world.memory();
  const Region region = memory.Create("w", RegionType::kF32, 1000);
  const Region numbers = memory.Create("n", RegionType::kI64, 4);
  if (world.rank() == 0) {
    const std::vector<float> ones(1000, 1);
    MemoryGuard guard{numbers, 3, 0};
    uint64_t version = 0;
    memory.Accumulate(region, 0, ones, {}, &version, &guard).Wait();
    EXPECT_EQ(version, 1u);
    memory.FetchAdd(numbers, 3, 7);
    EXPECT_THROW(memory.Accumulate(region, 0, ones, {}, nullptr, &guard).Wait(), GuardChanged);
    guard.expected = 7;
    memory.Accumulate(region, 0, ones, {}, &version, &guard).Wait();
    EXPECT_EQ(version, 2u);  // what was refused left nothing
    EXPECT_EQ(memory.Notes(region, 0).size(), 2u);
    guard.index = 4;
    EXPECT_TRUE(Has(WhatOf([&] { memory.Accumulate(region, 0, ones, {}, nullptr, &guard).Wait(); }),
                    "beyond the end of region 'n'"));
    guard.region = region;
    EXPECT_TRUE(Has(WhatOf([&] { memory.Accumulate(region, 0, ones, {}, nullptr, &guard).Wait(); }),
                    "'w' holds f32 values"));
  }
  EXPECT_EQ(memory.Wait(region, 2, After(kPatience_s)), 2u);
  std::vector<float> got(1000);
  memory.Get(region, 0, got).Wait();
  EXPECT_EQ(got, std::vector<float>(1000, 2));
}

constexpr ConformanceCase kCases[] = {
    {"ARegionIsMadeOnceAndOpenedByAll", 3, ARegionIsMadeOnceAndOpenedByAll},
    {"WhatIsPutIsGot", 3, WhatIsPutIsGot},
    {"WholeNumbersAreThere", 2, WholeNumbersAreThere},
    {"AddsOfAllAreThereOnce", 4, AddsOfAllAreThereOnce},
    {"NobodySeesHalfOfAnAdd", 3, NobodySeesHalfOfAnAdd},
    {"FetchAddGivesEachNumberOnce", 4, FetchAddGivesEachNumberOnce},
    {"OneOfAllSwaps", 4, OneOfAllSwaps},
    {"AWaitEndsAtItsDeadline", 2, AWaitEndsAtItsDeadline},
    {"WhatCannotBeIsRefusedAndAllGoesOn", 2, WhatCannotBeIsRefusedAndAllGoesOn},
    {"ALockBelongsToOne", 3, ALockBelongsToOne},
    {"ADroppedTicketHasItsValues", 2, ADroppedTicketHasItsValues},
    {"SeveralTicketsKeepTheirOrder", 2, SeveralTicketsKeepTheirOrder},
    {"ThreadsOfARankShareAMemory", 2, ThreadsOfARankShareAMemory},
    {"AnAddMayDependOnANumber", 2, AnAddMayDependOnANumber},
    {"TheRingSaysWhatItNoLongerKeeps", 1, TheRingSaysWhatItNoLongerKeeps},
};

}  // namespace

std::span<const ConformanceCase> MemoryCases() { return kCases; }

}  // namespace trireme
