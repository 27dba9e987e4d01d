#include "data/scan_cache.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <utime.h>

#include <filesystem>

#include "base/files.h"
#include "base/random.h"
#include "data/broken_pictures.h"
#include "data/images.h"
#include "data/testing.h"
#include "image/testing.h"

namespace trireme {
namespace {

class ScanCacheTest : public testing::Test {
 protected:
  ScanCacheTest() {
    setenv("XDG_CACHE_HOME", (cache_.path() + "/cache").c_str(), 1);
    for (const char* name : {"b", "a", "a/deep"}) {
      std::filesystem::create_directories(folder_.path() + "/" + name);
    }
    for (const char* name : {"a/1.jpg", "a/deep/2.jpg", "b/3.png"}) Write(name, "x");
    Settle();
  }

  void Write(const std::string& name, const std::string& bytes) { folder_.Write(name, bytes); }
  // As if nothing had happened here for an hour.
  void Settle() {
    const utimbuf old = {1'000'000 + ++ticks_, 1'000'000 + ticks_};
    for (const char* name : {"", "/a", "/a/deep", "/b"}) {
      utime((folder_.path() + name).c_str(), &old);
    }
  }
  std::vector<std::string> Files() {
    const ScannedFolder scan = ScanFolderCached(folder_.path());
    std::vector<std::string> files;
    for (size_t i = 0; i < scan.files.size(); ++i) {
      files.push_back(fmt::format("{} {}", scan.files[i], scan.classes[scan.labels[i]]));
    }
    return files;
  }
  std::string CachePath() { return CacheFile(std::filesystem::canonical(folder_.path()), "scan"); }

  TemporaryFolder folder_, cache_;
  int ticks_ = 0;
};

TEST_F(ScanCacheTest, TheSecondScanReadsTheCacheUntilADirectoryChanges) {
  const std::vector<std::string> expected = {"a/1.jpg a", "a/deep/2.jpg a", "b/3.png b"};
  EXPECT_EQ(Files(), expected);
  ASSERT_TRUE(Exists(CachePath()));
  auto fields = ReadCache(CachePath());
  ASSERT_TRUE(fields);
  for (std::string& field : *fields) {
    if (field == "b/3.png") field = "b/cached.png";  // to see where it comes from
  }
  WriteCache(CachePath(), *fields);
  EXPECT_EQ(Files()[2], "b/cached.png b");
  Write("a/deep/4.jpg", "x");
  EXPECT_EQ(Files().size(), 4u);
  EXPECT_EQ(Files()[3], "b/3.png b");
}

TEST_F(ScanCacheTest, WhatChangedJustNowIsNotRemembered) {
  Write("b/new.png", "x");
  Files();
  EXPECT_FALSE(Exists(CachePath()));
}

TEST_F(ScanCacheTest, ADamagedCacheIsAsNone) {
  const std::vector<std::string> expected = Files();
  const std::string good = ReadFile(CachePath());
  for (uint64_t i = 0; i < 300; ++i) {
    std::string bad = good;
    bad[Hash(i) % bad.size()] ^= static_cast<char>(1 + Hash(i, 1) % 255);
    if (i % 3 == 0) bad.resize(Hash(i, 2) % bad.size());
    ReplaceFile(CachePath(), bad);
    EXPECT_EQ(Files(), expected);
  }
  for (uint64_t i = 0; i < 300; ++i) {  // the checksum right, the content not
    ReplaceFile(CachePath(), good);
    auto fields = *ReadCache(CachePath());
    fields.at(1 + Hash(i) % (fields.size() - 1)) = std::to_string(Hash(i, 1) % 9);
    if (i % 3 == 0) fields.resize(1 + Hash(i, 2) % (fields.size() - 1));
    WriteCache(CachePath(), fields);
    ScanFolderCached(folder_.path());
  }
}

TEST_F(ScanCacheTest, BrokenPicturesAreLeftOutOnceAndForAll) {
  const RgbPicture picture = SmoothPicture(20, 20);
  Write("a/1.jpg", MakeJpeg(picture));
  Write("a/deep/2.jpg", MakeJpeg(picture).substr(0, 300));
  Write("b/3.png", MakePng(picture));
  DataOptions options{.size = 8, .on_error = "skip"};
  for (int time = 0; time < 2; ++time) {  // found, then remembered
    const DataSet data = OpenImages(folder_.path(), options, {});
    EXPECT_EQ(data.train->size(), 2);
    EXPECT_EQ(data.train->label(1), 1);
    ASSERT_EQ(data.left_out.size(), 1u);
    EXPECT_TRUE(Holds(data.left_out[0], {"a/deep/2.jpg: "}));
  }
  Write("a/deep/2.jpg", MakeJpeg(picture));
  EXPECT_EQ(OpenImages(folder_.path(), options, {}).train->size(), 3);
  Write("b/3.png", "rubbish");
  EXPECT_TRUE(Holds(Refusal([&] { OpenImages(folder_.path(), options, {}); }),
                    {"/b: no image of this class can be decoded"}));
}

}  // namespace
}  // namespace trireme
