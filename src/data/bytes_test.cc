#include "data/bytes.h"

#include "data/testing.h"

namespace trireme {
namespace {

std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

TEST(ReadBytes, ReadsPlainAndPackedByContent) {
  const TemporaryFolder folder;
  const std::string content = SomeBytes(100'000);
  EXPECT_EQ(Text(ReadBytes(folder.Write("plain.gz", content))), content);
  EXPECT_EQ(Text(ReadBytes(folder.Write("packed", Gzip(content)))), content);
}

TEST(ReadBytes, AMachineThatDoesNotTellItsMemorySetsNoLimit) {
  EXPECT_EQ(HalfOfMemory(1000, 4096), 2048000);
  EXPECT_GT(HalfOfMemory(-1, 4096), int64_t{1} << 60);
  EXPECT_GT(HalfOfMemory(0, 4096), int64_t{1} << 60);
}

TEST(ReadBytes, UnpacksSeveralMembersAndIgnoresPadding) {
  const TemporaryFolder folder;
  const std::string packed = Gzip("one ") + Gzip(std::string(5000, 'x')) + std::string(64, '\0');
  EXPECT_EQ(Text(ReadBytes(folder.Write("members", packed))), "one " + std::string(5000, 'x'));
}

TEST(ReadBytes, SaysWhatIsWrongWithWhichFile) {
  const TemporaryFolder folder;
  const std::string missing = folder.path() + "/missing";
  EXPECT_TRUE(Holds(Refusal([&] { ReadBytes(missing); }), {missing, "No such file"}));
  EXPECT_TRUE(Holds(Refusal([&] { ReadBytes(folder.path()); }), {folder.path(), "is a folder"}));
  const std::string empty = folder.Write("empty", "");
  EXPECT_TRUE(Holds(Refusal([&] { ReadBytes(empty); }), {empty, "is empty"}));
  const std::string nothing = folder.Write("nothing.gz", Gzip(""));
  EXPECT_TRUE(Holds(Refusal([&] { ReadBytes(nothing); }), {nothing, "empty once unpacked"}));
}

TEST(ReadBytes, RefusesGzipThatEndsEarlyAtEveryLength) {
  const TemporaryFolder folder;
  const std::string packed = Gzip(SomeBytes(3000));
  for (size_t size = 2; size < packed.size(); ++size) {
    const std::string cut = folder.Write("cut.gz", packed.substr(0, size));
    const std::string message = Refusal([&] { ReadBytes(cut); });
    ASSERT_TRUE(Holds(message, {cut, "ends too early", fmt::format("byte {}", size)}));
  }
}

TEST(ReadBytes, RefusesGzipWithAWrongByte) {
  const TemporaryFolder folder;
  std::string packed = Gzip(SomeBytes(3000));
  packed[packed.size() - 6] ^= 1;  // in the checksum
  const std::string broken = folder.Write("broken.gz", packed);
  EXPECT_TRUE(Holds(Refusal([&] { ReadBytes(broken); }), {broken, "broken gzip"}));
}

TEST(Gunzip, StopsAtTheLimitWhateverTheFileSays) {
  std::string packed = Gzip(std::string(1'000'000, '\0'));  // packs a thousand times
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(packed.data()),
                                       packed.size());
  EXPECT_EQ(Gunzip(bytes, "f", 1'000'000).size(), 1'000'000u);
  EXPECT_TRUE(Holds(Refusal([&] { Gunzip(bytes, "f", 999'999); }), {"f: larger than 999999"}));
  EXPECT_TRUE(Holds(Refusal([&] { Gunzip(bytes, "f", 100); }), {"f: larger than 100"}));
  for (size_t i = packed.size() - 4; i < packed.size(); ++i) packed[i] = '\xff';  // "4 GB"
  EXPECT_TRUE(Holds(Refusal([&] { Gunzip(bytes, "f", 1 << 24); }), {"broken gzip"}));
}

}  // namespace
}  // namespace trireme
