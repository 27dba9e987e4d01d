// A box whose contents are in a file: kept through the end of a box, restored from a snapshot after
// the end of the machine, refused where somebody else has changed it.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "transport/check/what_of.h"
#include "transport/memory/box.h"
#include "transport/memory/mapped.h"
#include "transport/memory/snapshot.h"

namespace trireme {
namespace {

constexpr double kPatience_s = 60;
constexpr size_t kBytes = 4 << 20;

// Writes over some bytes of a file.
void Change(const std::string& path, uint64_t at, std::string_view bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(std::streamoff(at));
  file.write(bytes.data(), std::streamsize(bytes.size()));
}

class MemoryFile : public testing::Test {
 protected:
  MemoryBoxSetup BoxSetup() {
    return {.bytes = kBytes, .file = path_, .say = [this](const std::string& s) { said_ = s; }};
  }
  // A box with something in it, that has ended. 101 ones in "w", 7 in "n".
  void Fill() {
    MemoryBox box(BoxSetup());
    const auto memory = box.Connect();
    incarnation_ = memory->incarnation();
    const Region region = memory->Create("w", RegionType::kF32, 101);
    const std::byte note[3] = {std::byte{1}, std::byte{2}, std::byte{3}};
    memory->Accumulate(region, 0, std::vector<float>(101, 1), note).Wait();
    memory->FetchAdd(memory->Create("n", RegionType::kI64, 2), 1, 7);
  }
  void ExpectFilled(MemoryBox& box) {
    const auto memory = box.Connect();
    const Region region = memory->Open("w", After(0));
    std::vector<float> values(101);
    uint64_t version = 0;
    memory->Get(region, 0, values, &version).Wait();
    EXPECT_EQ(values, std::vector<float>(101, 1));
    EXPECT_EQ(version, 1u);
    EXPECT_EQ(memory->Notes(region, 0).at(0).note.size(), 3u);
    EXPECT_EQ(memory->FetchAdd(memory->Open("n", After(0)), 1, 0), 7);
  }
  void LoseMachine() {  // killed, and started again under another name
    Change(path_, offsetof(BoxHeader, boot), "another");
    Change(path_, offsetof(BoxHeader, clean), std::string(4, '\0'));
  }

  const TemporaryDirectory folder_;
  const std::string path_ = folder_ / "box";
  std::string said_;
  uint64_t incarnation_ = 0;
};

TEST_F(MemoryFile, KeepsWhatABoxHeld) {
  Fill();
  MemoryBox box(BoxSetup());
  ExpectFilled(box);
  EXPECT_EQ(box.Connect()->incarnation(), incarnation_);
  EXPECT_EQ(said_, "");
  EXPECT_TRUE(Has(WhatOf([&] { MemoryBox other(BoxSetup()); }), "another process serves it"));
}

TEST_F(MemoryFile, AClosedOneOutlivesTheMachine) {
  Fill();
  Change(path_, offsetof(BoxHeader, boot), "another");
  MemoryBox box(BoxSetup());
  ExpectFilled(box);
  EXPECT_EQ(box.Connect()->incarnation(), incarnation_);
}

TEST_F(MemoryFile, AfterTheMachinesEndTheSnapshotCounts) {
  Fill();
  {
    MemoryBox box(BoxSetup());
    WriteSnapshot(box.store(), path_ + ".snapshot");
    const auto memory = box.Connect();  // what the snapshot does not have
    memory->Accumulate(memory->Open("w", After(0)), 0, std::vector<float>(101, 5)).Wait();
  }
  LoseMachine();
  MemoryBox box(BoxSetup());
  ExpectFilled(box);
  EXPECT_NE(box.Connect()->incarnation(), incarnation_);
  EXPECT_TRUE(Has(said_, "restored 2 regions")) << said_;
}

TEST_F(MemoryFile, WithoutASnapshotItBeginsEmpty) {
  Fill();
  LoseMachine();
  MemoryBox box(BoxSetup());
  EXPECT_EQ(box.store().Look().regions.size(), 0u);
  EXPECT_NE(box.Connect()->incarnation(), incarnation_);
}

TEST_F(MemoryFile, SnapshotsAreTakenWhereSomethingChanged) {
  MemoryBoxSetup setup = BoxSetup();
  setup.snapshot_s = 0.01;
  MemoryBox box(setup);
  const auto memory = box.Connect();
  const Region region = memory->Create("w", RegionType::kF32, 10);
  EXPECT_FALSE(Exists(path_ + ".snapshot"));
  memory->Accumulate(region, 0, std::vector<float>(10, 1)).Wait();
  while (!Exists(path_ + ".snapshot")) memory->Wait(region, 2, After(0.01));
}

TEST_F(MemoryFile, OtherSizesAndOtherFilesAreRefused) {
  Fill();
  MemoryBoxSetup larger = BoxSetup();
  larger.bytes *= 2;
  EXPECT_TRUE(Has(WhatOf([&] { MemoryBox box(larger); }), "give its size"));
  Change(path_, offsetof(BoxHeader, format), {"\1\0\0\0", 4});
  EXPECT_TRUE(Has(WhatOf([&] { MemoryBox box(BoxSetup()); }), "has format 1, this program reads"));
  ReplaceFile(path_, "something else that is here");
  EXPECT_TRUE(Has(WhatOf([&] { MemoryBox box(BoxSetup()); }), "not a memory box's file"));
  MemoryBoxSetup folder = BoxSetup();
  folder.file = folder_.path();
  EXPECT_NE(WhatOf([&] { MemoryBox box(folder); }), "");
}

TEST_F(MemoryFile, ACutFileIsRefused) {
  Fill();
  const uint64_t size = std::filesystem::file_size(path_);
  for (const uint64_t left : {size - 1, size / 2, uint64_t{40}, uint64_t{8}}) {
    std::filesystem::resize_file(path_, left);
    EXPECT_TRUE(Has(WhatOf([&] { MemoryBox box(BoxSetup()); }), "not a memory box's file")) << left;
  }
}

TEST_F(MemoryFile, AFreeSessionThatHoldsSomethingIsRefused) {
  constexpr size_t kFree = 200;
  const size_t session = offsetof(BoxHeader, sessions) + kFree * sizeof(SessionRecord);
  for (const size_t field : {offsetof(SessionRecord, slot_bytes), offsetof(SessionRecord, last)}) {
    std::filesystem::remove(path_);
    Fill();
    Change(path_, session + field, {"\0\1", 2});
    EXPECT_TRUE(Has(WhatOf([&] { MemoryBox box(BoxSetup()); }), "session 200 is free")) << field;
  }
}

// Whatever bytes of the records change, the file opens or is refused with an Error, and what opens
// can be used. The sanitizer builds make it sharp; TRIREME_FUZZ_S in the environment goes on for so
// many seconds.
TEST_F(MemoryFile, RandomChangesAreRefusedOrHarmless) {
  const char* const wanted = std::getenv("TRIREME_FUZZ_S");
  const double seconds = wanted ? ParseNumber<double>(wanted).value_or(0) : 0;
  const Stopwatch watch;
  Fill();
  const std::string whole = ReadFile(path_);
  constexpr size_t kRecords = offsetof(BoxHeader, aside);
  int refused = 0;
  for (uint64_t i = 0; i < 60 || watch.seconds() < seconds; ++i) {
    std::string bytes = whole;
    for (uint64_t k = 0; k < 1 + Hash(i, 1) % 3; ++k) {
      // Half of them where the first records are.
      const uint64_t limit = Hash(i, 10 + k) % 2 ? sizeof(RegionRecord) * 2 : kRecords;
      const uint64_t from = limit == kRecords ? 0 : offsetof(BoxHeader, journal);
      const uint64_t at =
          from + Hash(i, 20 + k) % (limit == kRecords ? kRecords : limit + sizeof(Journal));
      bytes[at] = char(bytes[at] ^ char(1 << Hash(i, 30 + k) % 8));
    }
    ReplaceFile(path_, bytes);
    const std::string words = WhatOf([&] {
      MemoryBox box(BoxSetup());
      const auto memory = ConnectMapped(MemoryImage::OpenFile(path_), 5);
      const Region region = memory->Create("fresh", RegionType::kF32, 1000);
      memory->Accumulate(region, 0, std::vector<float>(1000, 1)).Wait();
    });
    refused += !words.empty();
  }
  EXPECT_GT(refused, 0);
}

TEST_F(MemoryFile, ADamagedSnapshotIsRefused) {
  Fill();
  const std::string snapshot = path_ + ".snapshot";
  {
    MemoryBox box(BoxSetup());
    WriteSnapshot(box.store(), snapshot);
  }
  const std::string whole = ReadFile(snapshot);
  const auto refused = [&](const std::string& bytes) {
    ReplaceFile(snapshot, bytes);
    std::filesystem::remove(path_);
    return Has(WhatOf([&] { MemoryBox box(BoxSetup()); }), "or was changed");
  };
  for (uint64_t i = 0; i < 40; ++i) {
    std::string bytes = whole;
    if (i % 4 == 0) {
      bytes.resize(Hash(i, 1) % bytes.size());
    } else {
      const size_t at = Hash(i, 1) % (i % 2 ? 150 : bytes.size());
      bytes[at] = char(bytes[at] ^ char(1 << Hash(i, 2) % 8));
    }
    const std::string words = WhatOf([&] {
      ReplaceFile(snapshot, bytes);
      std::filesystem::remove(path_);
      MemoryBox box(BoxSetup());
    });
    EXPECT_NE(words, "") << i;
  }
  EXPECT_TRUE(refused(whole + "x"));
  EXPECT_TRUE(refused(""));
  EXPECT_FALSE(refused(whole));
}

}  // namespace
}  // namespace trireme
