// Files are untrusted: whatever bytes they hold, opening them succeeds or throws an Error.
// Random mutations of valid files from a fixed seed; the sanitizer builds make it sharp.
#include <cmath>
#include <functional>

#include "base/random.h"
#include "data/bytes.h"
#include "data/cifar.h"
#include "data/csv.h"
#include "data/idx.h"
#include "data/sources.h"
#include "data/testing.h"

namespace trireme {
namespace {

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  size_t Below(size_t limit) { return limit == 0 ? 0 : Hash(seed_, count_++) % limit; }

 private:
  uint64_t seed_;
  uint64_t count_ = 0;
};

std::string Mutate(std::string bytes, Dice& dice) {
  static const std::vector<std::string> kPieces = {"\"",
                                                   ",",
                                                   "\n",
                                                   "\r",
                                                   "\"\"",
                                                   "nan",
                                                   "-",
                                                   "1e999",
                                                   std::string(4, '\0'),
                                                   "\xff\xff\xff\xff",
                                                   "\x7f\xff\xff\xff",
                                                   std::string(1, '\x08'),
                                                   "\x1f\x8b",
                                                   "\xef\xbb\xbf"};
  for (size_t i = 1 + dice.Below(4); i > 0; --i) {
    const size_t at = dice.Below(bytes.size() + 1);
    switch (dice.Below(6)) {
      case 0:
        bytes.resize(at);
        break;
      case 1:
        if (at < bytes.size()) bytes[at] = static_cast<char>(bytes[at] ^ 1 << dice.Below(8));
        break;
      case 2:
        bytes.insert(at, kPieces[dice.Below(kPieces.size())]);
        break;
      case 3:
        bytes.erase(at, 1 + dice.Below(8));
        break;
      case 4:  // headers are short and decide most
        if (const size_t front = dice.Below(24); front < bytes.size()) {
          bytes[front] = static_cast<char>(dice.Below(256));
        }
        break;
      default: {
        const std::string& piece = kPieces[dice.Below(kPieces.size())];
        bytes.replace(at, piece.size(), piece);
      }
    }
  }
  return bytes;
}

// Reads every value, so that a source that promises too much is caught.
void ReadAll(const Source& source) {
  std::vector<float> sample(source.shape().size());
  for (int64_t i = 0; i < source.size(); ++i) {
    source.Read(i, sample);
    for (const float value : sample) ASSERT_TRUE(std::isfinite(value));
  }
}

struct Tally {
  int accepted = 0;
  int refused = 0;
};

Tally Fuzz(const std::vector<std::string>& seeds, int rounds,
           const std::function<void(const std::string&)>& open) {
  Tally tally;
  Dice dice(7);
  for (int round = 0; round < rounds; ++round) {
    const std::string bytes = Mutate(seeds[dice.Below(seeds.size())], dice);
    try {
      open(bytes);
      ++tally.accepted;
    } catch (const Error& error) {
      EXPECT_GT(std::string(error.what()).size(), 10u);
      ++tally.refused;
    }
  }
  // Both must happen, or the mutations miss what they are for.
  EXPECT_GT(tally.accepted, 0);
  EXPECT_GT(tally.refused, rounds / 10);
  return tally;
}

constexpr int kRounds = 4000;

TEST(Fuzz, Idx) {
  const TemporaryFolder folder;
  const std::string good = Idx({4, 3, 2}, SomeBytes(24));
  const std::string colour = Idx({2, 2, 2, 3}, SomeBytes(24));
  Fuzz({good, colour, Gzip(good)}, kRounds,
       [&](const std::string& bytes) { ReadAll(*OpenIdxPictures(folder.Write("f", bytes))); });
  Fuzz({Idx({4}, SomeLabels(4, 3)), Gzip(Idx({4}, SomeLabels(4, 3)))}, kRounds,
       [&](const std::string& bytes) {
         folder.Write("train-images-idx3-ubyte", good);
         folder.Write("train-labels-idx1-ubyte", bytes);
         ReadAll(*OpenIdxFolder(folder.path(), {"a", "b", "c"}).train);
       });
}

TEST(Fuzz, Cifar) {
  const TemporaryFolder folder;
  Fuzz({CifarRecords(2), Gzip(CifarRecords(2))}, kRounds, [&](const std::string& bytes) {
    folder.Write("data_batch_1.bin", bytes);
    ReadAll(*OpenCifarFolder(folder.path()).train);
  });
}

TEST(Fuzz, Csv) {
  const TemporaryFolder folder;
  const std::string plain = "1,2,a\n3,4,b\n5,6,a\n";
  const std::string header = "Id,x,\"y, z\",kind\r\n1,2,3,\"a \"\"b\"\"\"\r\n4,5,6,c\r\n";
  const std::vector<std::string> seeds = {plain, header, Gzip(header)};
  const std::vector<std::string> classes = {"a", "b"};
  Fuzz(seeds, kRounds,
       [&](const std::string& bytes) { ReadAll(*ReadCsv(folder.Write("f", bytes), {}).rows); });
  Fuzz(seeds, kRounds, [&](const std::string& bytes) {
    ReadAll(*ReadCsv(folder.Write("f", bytes), {.label = "kind", .id = "1"}).rows);
  });
  Fuzz(seeds, kRounds, [&](const std::string& bytes) {
    ReadAll(*OpenRecords(folder.Write("f", bytes), {1, 1, 2}, {classes}, {.id = "Id"}).samples);
  });
}

TEST(Fuzz, Gzip) {
  Fuzz({Gzip(SomeBytes(3000)), Gzip("a") + Gzip("b")}, kRounds, [&](const std::string& bytes) {
    const std::span<const uint8_t> packed(reinterpret_cast<const uint8_t*>(bytes.data()),
                                          bytes.size());
    EXPECT_LE(Gunzip(packed, "f", 100'000).size(), 100'000u);
  });
}

TEST(Fuzz, Specs) {
  Fuzz({"synthetic:4x4x1:3:10", "csv:", "iris", "cifar10:/", "mnist:/x"}, kRounds,
       [&](const std::string& spec) { OpenData({.source = spec}, 1); });
}

}  // namespace
}  // namespace trireme
