#include "data/pack.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "base/files.h"
#include "base/random.h"
#include "data/images.h"
#include "data/sources.h"
#include "data/testing.h"
#include "image/testing.h"

namespace trireme {
namespace {

class PackTest : public testing::Test {
 protected:
  PackTest() {
    for (const char* part : {"train", "val"}) {
      for (int i = 0; i < 6; ++i) {
        const std::string name = fmt::format("{}/{}/{}.jpg", part, i % 2 ? "b" : "a", i);
        std::filesystem::create_directories(
            std::filesystem::path(folder_.path() + "/" + name).parent_path());
        folder_.Write(name, MakeJpeg(SmoothPicture(60 + 7 * i, 48 + 5 * i), {}, 1 + i));
      }
    }
    options_.size = 16;
    options_.normalize = "none";
  }

  // val validates then.
  void AddTestPart() {
    std::filesystem::create_directories(folder_.path() + "/test/b");
    for (const char* name : {"test/b/1.jpg", "test/b/2.jpg"}) {
      folder_.Write(name, MakeJpeg(SmoothPicture(30, 40)));
    }
  }

  std::string WritePackOf(int side) {
    const std::string path = folder_.path() + "/x.pack";
    WritePack(folder_.path(), options_, side, path);
    return path;
  }
  DataSet Open(const std::string& source) {
    DataOptions options = options_;
    options.source = source;
    return OpenData(options, 1);
  }

  TemporaryFolder folder_;
  DataOptions options_;
};

std::vector<float> ReadAll(const Source& source) {
  std::vector<float> all(source.size() * source.shape().size());
  for (int64_t i = 0; i < source.size(); ++i) {
    source.Read(i, std::span(all).subspan(i * source.shape().size(), source.shape().size()));
  }
  return all;
}

TEST_F(PackTest, FilesAsTheyAreGiveTheSameSamples) {
  const DataSet folders = Open("images:" + folder_.path());
  const DataSet packed = Open("pack:" + WritePackOf(0));
  EXPECT_EQ(packed.classes, folders.classes);
  EXPECT_EQ(packed.train->size(), 6);
  EXPECT_EQ(packed.test->size(), 6);
  EXPECT_EQ(ReadAll(*packed.train), ReadAll(*folders.train));
  EXPECT_EQ(ReadAll(*packed.test), ReadAll(*folders.test));
  for (int64_t i = 0; i < 6; ++i) EXPECT_EQ(packed.train->label(i), folders.train->label(i));
  EXPECT_FALSE(std::filesystem::exists(NameBeside(folder_.path() + "/x.pack")));
}

TEST_F(PackTest, ThreePartsStayThree) {
  EXPECT_EQ(ReadFile(WritePackOf(0))[8], 1);  // two parts: the version that older programs read
  AddTestPart();
  const DataSet folders = Open("images:" + folder_.path());
  const DataSet packed = Open("pack:" + WritePackOf(0));
  EXPECT_EQ(packed.train->size(), 6);
  EXPECT_EQ(packed.validation->size(), 6);
  EXPECT_EQ(packed.test->size(), 2);
  EXPECT_EQ(ReadAll(*packed.validation), ReadAll(*folders.validation));
  EXPECT_EQ(ReadAll(*packed.test), ReadAll(*folders.test));
  for (int64_t i = 0; i < 14; ++i) EXPECT_EQ(Pack(folder_.path() + "/x.pack").Check(i), "");
}

TEST_F(PackTest, DecodedPicturesAreUprightAndNearlyTheSame) {
  const std::string path = WritePackOf(32);
  const Pack pack(path);
  EXPECT_EQ(pack.head().side, 32u);
  for (int64_t i = 0; i < 12; ++i) {
    EXPECT_EQ(std::min(pack.entry(i).width, pack.entry(i).height), 32u);
    EXPECT_EQ(pack.Check(i), "");
    EXPECT_NE(pack.name(i).find(".jpg"), std::string::npos);
  }
  const std::vector<float> a = ReadAll(*Open("images:" + folder_.path()).train);
  const std::vector<float> b = ReadAll(*Open("pack:" + path).train);
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 0.04) << i;
}

// As every file that is replaced (base/replacement.cc); a pipe cannot be gone back in.
TEST_F(PackTest, GoesWhereALinkLeadsAndNeverIntoAPipe) {
  std::filesystem::create_symlink("y.pack", folder_.path() + "/x.pack");
  const std::string path = WritePackOf(0);
  EXPECT_TRUE(std::filesystem::is_symlink(path));
  EXPECT_EQ(Pack(folder_.path() + "/y.pack").head().train, 6u);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const std::string into = fmt::format("/proc/self/fd/{}", ends[1]);
  EXPECT_TRUE(Holds(Refusal([&] { WritePack(folder_.path(), options_, 0, into); }),
                    {into, "a pack needs a file"}));
  for (const int end : ends) close(end);
}

TEST_F(PackTest, ADamagedPictureIsFoundAndNamed) {
  const std::string path = WritePackOf(0);
  std::string bytes = ReadFile(path);
  const uint64_t place = Pack(path).entry(3).begin;
  bytes[place + 300] ^= 1;
  folder_.Write("x.pack", bytes);
  const Pack pack(path);
  EXPECT_TRUE(Holds(pack.Check(3), {"x.pack: image 3", ".jpg", "checksum"}));
  EXPECT_EQ(pack.Check(2), "");
  const DataSet data = Open("pack:" + path);
  std::vector<float> sample(size_t(data.shape.size()));
  data.train->Read(2, sample);
  for (int time = 0; time < 2; ++time) {
    EXPECT_TRUE(Holds(Refusal([&] { data.train->Read(3, sample); }), {"image 3", "checksum"}));
  }
}

TEST_F(PackTest, WhatIsNoPackOrCutIsRefused) {
  const std::string path = WritePackOf(0);
  const std::string bytes = ReadFile(path);
  for (const size_t length : {size_t(0), size_t(10), PackHead::kBytes, bytes.size() - 1}) {
    const std::string cut = folder_.Write("cut.pack", bytes.substr(0, length));
    EXPECT_TRUE(Holds(Refusal([&] { Pack pack(cut); }), {"cut.pack"})) << length;
  }
  EXPECT_TRUE(Holds(Refusal([&] { Open("pack:" + folder_.path()); }), {"is not a file"}));
  EXPECT_TRUE(Holds(Refusal([&] { Open("pack:/none"); }), {"cannot open /none"}));
}

// The checksums are made right again, so that what they guard is reached.
TEST_F(PackTest, HostilePacksAreRefusedOrRead) {
  int accepted = 0, refused = 0;
  for (const int side : {0, 8}) {
    if (side) AddTestPart();           // the second version
    const size_t crcs = side ? 8 : 0;  // how much later they stand in it
    const std::string good = ReadFile(WritePackOf(side));
    uint64_t count = 0;
    const auto dice = [&](size_t limit) { return Hash(side, count++) % limit; };
    for (int round = 0; round < 1500; ++round) {
      std::string bytes = good;
      const uint64_t index = Pack(folder_.path() + "/x.pack").head().index_begin;
      for (size_t i = 1 + dice(3); i > 0; --i) {
        const size_t at = dice(2) ? 8 + dice(48 + crcs) : index + dice(bytes.size() - index);
        bytes[at] = dice(2) ? static_cast<char>(dice(256)) : static_cast<char>(dice(2) ? 0xff : 0);
      }
      if (dice(8) == 0) bytes.resize(dice(bytes.size()));
      const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
      const auto put = [&](size_t at, uint32_t crc) {
        for (size_t i = 0; i < 4 && at + i < bytes.size(); ++i) bytes[at + i] = char(crc >> 8 * i);
      };
      if (bytes.size() > index) put(56 + crcs, Crc({data + index, bytes.size() - index}));
      if (bytes.size() > 64) put(60 + crcs, Crc({data, 60 + crcs}));
      const std::string path = folder_.Write("f.pack", bytes);
      try {
        const Pack pack(path);
        std::vector<float> sample(16 * 16 * 3);
        for (int64_t i = 0; i < static_cast<int64_t>(pack.head().pictures()); ++i) {
          pack.Check(i);
          pack.name(i);
        }
        DataOptions options = options_;
        options.source = "pack:" + path;
        OpenData(options, 1).train->Read(0, sample);
        ++accepted;
      } catch (const Error& error) {
        ++refused;
      }
    }
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 300);
}

}  // namespace
}  // namespace trireme
