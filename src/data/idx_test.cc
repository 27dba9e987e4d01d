#include "data/idx.h"

#include "data/testing.h"

namespace trireme {
namespace {

// A folder with 6 training and 4 test pictures of 2 x 3.
struct IdxFolder : TemporaryFolder {
  IdxFolder() {
    Write("train-images-idx3-ubyte", Idx({6, 2, 3}, SomeBytes(36)));
    Write("train-labels-idx1-ubyte", Idx({6}, SomeLabels(6, 3)));
    Write("t10k-images-idx3-ubyte", Idx({4, 2, 3}, SomeBytes(24)));
    Write("t10k-labels-idx1-ubyte", Idx({4}, SomeLabels(4, 4)));
  }
  std::string Refused(std::vector<std::string> classes = {}) const {
    return Refusal([&] { OpenIdxFolder(path(), classes); });
  }
  void Remove(const char* name) const { std::filesystem::remove(path() + "/" + name); }
};

void ExpectSomeBytes(const Source& source) {
  std::vector<float> sample(source.shape().size());
  uint8_t expected = 0;
  for (int64_t i = 0; i < source.size(); ++i) {
    source.Read(i, sample);
    for (const float value : sample) {
      EXPECT_NEAR(value, expected / 255.0, 1e-7);
      expected = static_cast<uint8_t>(expected + 37);
    }
  }
}

TEST(Idx, ReadsPicturesLabelsAndBothParts) {
  const IdxFolder folder;
  const DataSet data = OpenIdxFolder(folder.path(), {});
  EXPECT_EQ(data.shape, (SampleShape{2, 3, 1}));
  EXPECT_EQ(data.classes, (std::vector<std::string>{"0", "1", "2", "3"}));
  ASSERT_EQ(data.train->size(), 6);
  ASSERT_EQ(data.test->size(), 4);
  ExpectSomeBytes(*data.train);
  for (int i = 0; i < 6; ++i) EXPECT_EQ(data.train->label(i), i % 3);
}

TEST(Idx, ReadsColoursDottedNamesAndGzip) {
  const TemporaryFolder folder;
  folder.Write("train-images.idx4-ubyte.gz", Gzip(Idx({5, 2, 3, 3}, SomeBytes(90))));
  folder.Write("train-labels.idx1-ubyte.gz", Gzip(Idx({5}, SomeLabels(5, 2))));
  const DataSet data = OpenIdxFolder(folder.path(), {"no", "yes"});
  EXPECT_EQ(data.shape, (SampleShape{2, 3, 3}));
  EXPECT_EQ(data.classes, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(data.test, nullptr);
  ExpectSomeBytes(*data.train);
}

TEST(Idx, NamesTheMissingFile) {
  const IdxFolder folder;
  folder.Remove("train-labels-idx1-ubyte");
  EXPECT_TRUE(Holds(folder.Refused(), {folder.path(), "no train-labels-idx1-ubyte"}));
  const TemporaryFolder nothing;
  EXPECT_TRUE(Holds(Refusal([&] { OpenIdxFolder(nothing.path(), {}); }),
                    {nothing.path(), "no train-images-idx3-ubyte"}));
}

struct BadFile {
  const char* name;
  std::string content;
  std::vector<std::string> message;
};

TEST(Idx, RefusesBrokenFilesWithPlaceAndReason) {
  const char* images = "train-images-idx3-ubyte";
  const char* labels = "train-labels-idx1-ubyte";
  const std::string good = Idx({6, 2, 3}, SomeBytes(36));
  std::string floats = good;
  floats[2] = 13;
  const std::vector<BadFile> cases = {
      {images, "", {images, "empty"}},
      {images, "PNG...", {images, "not an idx file"}},
      {images, std::string(3, '\0'), {images, "not an idx file"}},
      {images, good.substr(0, 9), {images, "9 bytes", "header of 3"}},
      {images, good.substr(0, 51), {images, "more data than the 35 bytes"}},
      {images, good + "x", {images, "announces 36 bytes, but 37"}},
      {images, floats, {images, "type 13 at byte 2"}},
      {images, Idx({6, 0, 3}, SomeBytes(36)), {images, "size 2 (byte 8) is 0"}},
      {images, Idx({}, "abc"), {images, "0 dimensions"}},
      {images, Idx({36}, SomeBytes(36)), {images, "1 dimensions", "have 3"}},
      {images, Idx({~0u, ~0u, ~0u}, SomeBytes(36)), {images, "more data than the 36 bytes"}},
      {images, Idx({1u << 31, 1u << 31, 4}, SomeBytes(36)), {images, "more data"}},
      {images, Idx({5, 2, 3}, SomeBytes(30)), {images, "5 images", labels, "6 labels"}},
      {labels, Idx({6, 1}, SomeLabels(6, 3)), {labels, "2 dimensions", "labels have 1"}},
      {labels, Idx({6}, "\1\2\1\7\1\2"), {labels, "label 7 of record 3 (byte 11)", "4 classes"}},
      {"t10k-images-idx3-ubyte", Idx({4, 3, 2}, SomeBytes(24)), {"2 x 3 x 1", "3 x 2 x 1"}},
  };
  for (const BadFile& bad : cases) {
    const IdxFolder folder;
    folder.Write(bad.name, bad.content);
    EXPECT_TRUE(Holds(folder.Refused({"a", "b", "c", "d"}), bad.message));
  }
}

TEST(Idx, RefusesAFolderInPlaceOfAFile) {
  const IdxFolder folder;
  folder.Remove("train-images-idx3-ubyte");
  std::filesystem::create_directory(folder.path() + "/train-images-idx3-ubyte");
  EXPECT_TRUE(Holds(folder.Refused(), {"train-images-idx3-ubyte", "is a folder"}));
}

}  // namespace
}  // namespace trireme
