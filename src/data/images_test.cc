#include "data/images.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <set>

#include "base/sha256.h"
#include "data/loader.h"
#include "data/pack.h"
#include "data/sources.h"
#include "data/testing.h"
#include "image/testing.h"

namespace trireme {
namespace {

// Pictures of one colour each, of different sizes: red says which it is.
class Pictures {
 public:
  void Add(const std::string& name, int red, bool png = false) {
    std::filesystem::create_directories(
        (folder_.path() + "/" + name).substr(0, (folder_.path() + "/" + name).rfind('/')));
    RgbPicture picture = SmoothPicture(20 + red % 7, 30 + red % 5);
    for (size_t i = 0; i < picture.rgb.size(); i += 3) picture.rgb[i] = static_cast<uint8_t>(red);
    folder_.Write(name, png ? MakePng(picture) : MakeJpeg(picture));
  }
  void Write(const std::string& name, const std::string& content) { folder_.Write(name, content); }
  void MakeFolder(const std::string& name) const {
    std::filesystem::create_directories(folder_.path() + "/" + name);
  }
  DataOptions options(int size = 8) const {
    return {.source = "images:" + folder_.path(), .normalize = "none", .size = size};
  }
  const std::string& path() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

// The red of each sample in the middle of the picture.
std::vector<int> Reds(const Source& source) {
  std::vector<int> reds;
  std::vector<float> sample(source.shape().size());
  for (int64_t i = 0; i < source.size(); ++i) {
    source.Read(i, sample);
    reds.push_back(static_cast<int>(std::lround(sample[sample.size() / 2 / 3 * 3] * 255)));
  }
  return reds;
}

TEST(Images, FoldersAreClassesAndPartsAreFound) {
  for (const auto& [train, test] : std::vector<std::pair<std::string, std::string>>{
           {"train", "val"}, {"train", "test"}, {"seg_train", "seg_test"}, {"a", "b"}}) {
    Pictures pictures;
    pictures.Add(train + "/dog/1.png", 10, true);
    pictures.Add(train + "/cat/odd name, é.PNG", 20, true);
    pictures.Add(train + "/cat/deep/er/3.png", 30, true);
    pictures.Add(test + "/dog/1.png", 40, true);
    pictures.Write(train + "/cat/notes.txt", "no picture");
    pictures.Write(train + "/cat/.hidden.png", "no picture");
    DataOptions options = pictures.options();
    if (train == "a") options.train_folder = "a", options.test_folder = "b";
    const DataSet data = OpenData(options, 1);
    EXPECT_EQ(data.classes, (std::vector<std::string>{"cat", "dog"}));
    EXPECT_EQ(data.shape, (SampleShape{8, 8, 3}));
    EXPECT_EQ(Reds(*data.train), (std::vector<int>{20, 30, 10}));
    EXPECT_EQ(Reds(*data.test), (std::vector<int>{40}));
    EXPECT_EQ(data.train->label(1), 0);
    EXPECT_EQ(data.test->label(0), 1);
    const std::vector<std::string> known = {"dog", "cow", "cat"};
    EXPECT_EQ(OpenData(options, 1, {known}).test->label(0), 0);
  }
}

// The same samples in the same order as from class folders.
TEST(Images, ClassesMayStandInACsvFile) {
  const struct {
    const char* file;
    const char* text;
  } kFiles[] = {
      {"labels.csv", "a.png,dog\nb.png,cat\nc.png,cat\n"},
      {"classes.csv", "image;class\n\"c.png\";cat\nb;cat\na;dog\na;dog\n"},
      {"labels.csv", "id\tlabel\tcamera\n./a.png\tdog\t1\nb.png\tcat\t2\nc.png\tcat\t3\n"},
      {"../train.csv", "dog,train/a.png\ncat,train/b.png\ncat,train/c.png\n"},
  };
  for (const auto& [file, text] : kFiles) {
    Pictures pictures;
    pictures.Add("train/a.png", 10, true);
    pictures.Add("train/b.png", 20, true);
    pictures.Add("train/c.png", 30, true);
    pictures.Write(std::string("train/") + file, text);
    pictures.Add("test/dog/1.png", 40, true);  // folders are classes there
    const DataSet data = OpenData(pictures.options(), 1);
    EXPECT_EQ(data.classes, (std::vector<std::string>{"cat", "dog"})) << text;
    EXPECT_EQ(Reds(*data.train), (std::vector<int>{20, 30, 10})) << text;
    EXPECT_EQ(data.train->label(1), 0);
    EXPECT_EQ(data.train->label(2), 1);
    EXPECT_EQ(data.test->label(0), 1);
  }
}

TEST(Images, AFileOfClassesThatDoesNotFitIsRefused) {
  const auto open = [](const std::string& text, bool second = false) {
    Pictures pictures;
    pictures.Add("a.png", 10, true);
    pictures.Add("deep/b.png", 20, true);
    pictures.Write("classes.csv", text);
    if (second) pictures.Write("more.csv", text);
    DataOptions options = pictures.options();
    options.test_fraction = 0.5;
    OpenData(options, 1);
  };
  const auto refusal = [&](const std::string& text, bool second = false) {
    return Refusal([&] { open(text, second); });
  };
  EXPECT_NO_THROW(open("a.png,x\ndeep/b.png,y\n"));
  EXPECT_TRUE(Holds(refusal("a.png,x\n"), {"1 of 2 images have no line", "deep/b.png"}));
  EXPECT_TRUE(Holds(refusal("a.png,x\ndeep/b.png,y\nz.png,x\n"), {"classes.csv:3", "'z.png'"}));
  EXPECT_TRUE(Holds(refusal("a.png,x\ndeep/b.png,y\na.png,y\n"), {":3:", "has two classes"}));
  EXPECT_TRUE(Holds(refusal("a.png,x\ndeep/b.png,\n"), {":2: the label is empty"}));
  EXPECT_TRUE(Holds(refusal("a.png,x\ndeep/b.png\n"), {":2: has no class"}));
  EXPECT_TRUE(Holds(refusal("n,x\nm,y\n"), {"neither of its first two lines", "'m'"}));
  EXPECT_TRUE(Holds(refusal("a.png,x,1\ndeep/b.png,y,2\n"), {"has 3 columns", "label or class"}));
  EXPECT_TRUE(Holds(refusal(""), {"classes.csv: is empty"}));
  EXPECT_TRUE(Holds(refusal("a.png,x\n", true), {"classes.csv and more.csv", "labels.csv"}));
}

TEST(Images, ValBesideTestValidates) {
  for (const std::string validation : {"val", "validation", "valid", "extra"}) {
    Pictures pictures;
    pictures.Add("train/dog/1.png", 10, true);
    pictures.Add("train/cat/1.png", 20, true);
    pictures.Add(validation + "/dog/1.png", 30, true);
    pictures.Add("test/cat/1.png", 40, true);
    DataOptions options = pictures.options();
    if (validation == "extra") {
      EXPECT_EQ(OpenData(options, 1).validation, nullptr);
      options.validation_folder = "extra";
      EXPECT_TRUE(Holds(Refusal([&] { OpenData(options, 1); }), {"data.validation_folder"}));
      options.train_folder = "train", options.test_folder = "test";
    }
    const DataSet data = OpenData(options, 1);
    EXPECT_EQ(Reds(*data.train), (std::vector<int>{20, 10}));
    EXPECT_EQ(Reds(*data.validation), (std::vector<int>{30}));
    EXPECT_EQ(data.validation->label(0), 1);
    EXPECT_EQ(Reds(*data.test), (std::vector<int>{40}));
  }
}

TEST(Images, AFolderOfOneFolderIsPassedThrough) {
  using Words = std::vector<std::string>;
  const auto expect = [](const Words& files, const Words& classes, int64_t train, int64_t test) {
    Pictures pictures;
    for (const std::string& file : files) pictures.Add(file, 1);
    DataOptions options = pictures.options();
    const DataSet data = OpenData(options, 1);
    EXPECT_EQ(data.classes, classes) << files[0];
    EXPECT_EQ(data.train->size(), train) << files[0];
    EXPECT_EQ(data.test->size(), test) << files[0];
  };
  expect({"seg_train/seg_train/sea/1.jpg", "seg_train/seg_train/ice/1.jpg",
          "seg_test/seg_test/sea/1.jpg", "seg_test/seg_test/ice/1.jpg", "seg_pred/seg_pred/1.jpg"},
         {"ice", "sea"}, 2, 2);
  expect({"top/data/train/a/1.jpg", "top/data/train/b/1.jpg", "top/data/test/a/1.jpg"}, {"a", "b"},
         2, 1);
  expect({"flowers/a/1.jpg", "flowers/b/1.jpg", "flowers/b/2.jpg", "__MACOSX/flowers/._1.jpg"},
         {"a", "b"}, 2, 1);
  expect({"train/x/1.jpg", "test/x/1.jpg"}, {"x"}, 1, 1);  // one class, not a folder around them
  expect({"train/x/deep/1.jpg", "test/x/1.jpg"}, {"x"}, 1, 1);

  Pictures pictures;
  pictures.Add("cat/one/1.jpg", 1);
  pictures.Add("cat/two/1.jpg", 1);
  const Words known = {"cat", "dog"};
  EXPECT_EQ(OpenForTest(pictures.options(), {8, 8, 3}, {known}).test->label(1), 0);
}

TEST(Images, AreSeenAtASizeThatSuitsThem) {
  const auto size = [](const std::vector<std::pair<int, int>>& sizes, bool packed) {
    const TemporaryFolder folder;
    std::filesystem::create_directories(folder.path() + "/x");
    std::filesystem::create_directories(folder.path() + "/y");
    for (size_t i = 0; i < sizes.size(); ++i) {
      folder.Write(fmt::format("{}/{}.png", i % 2 ? "x" : "y", i),
                   MakePng(SmoothPicture(sizes[i].first, sizes[i].second)));
    }
    if (!packed) return FindOwnSize({.source = "images:" + folder.path()});
    const std::string pack = folder.path() + "/.pack";
    WritePack(folder.path(), {}, 0, pack);
    return FindOwnSize({.source = "pack:" + pack});
  };
  const auto small = [](int side) { return OwnSize{side, true}; };
  const auto photos = [](int side) { return OwnSize{side, false}; };
  for (const bool packed : {false, true}) {
    EXPECT_EQ(size({{31, 31}, {31, 31}}, packed), small(31));
    EXPECT_EQ(size({{64, 48}, {48, 64}}, packed), small(48));
    EXPECT_EQ(size({{28, 28}, {30, 31}}, packed), small(32));
    EXPECT_EQ(size({{32, 32}, {65, 32}}, packed), photos(64));
    EXPECT_EQ(size({{150, 150}, {150, 160}}, packed), photos(112));
    EXPECT_EQ(size({{90, 40}, {120, 230}, {200, 128}}, packed), photos(80));  // the middle: 120
    EXPECT_EQ(size({{400, 298}, {298, 500}}, packed), photos(208));
    EXPECT_EQ(size({{400, 300}, {300, 500}}, packed), OwnSize());  // the usual one
  }
  EXPECT_EQ(FindOwnSize({.source = "images:/none"}), OwnSize());
  EXPECT_EQ(FindOwnSize({.source = "iris"}), OwnSize());
}

TEST(Images, AreTestedWholeOrByTheirTestPart) {
  Pictures pictures;
  for (int i = 0; i < 10; ++i) pictures.Add(fmt::format("{}/{}.jpg", i % 2 ? "x" : "y", i), 20 * i);
  DataOptions options = pictures.options(0);
  options.train_folder = "a", options.test_folder = "b";  // of the run
  const std::vector<std::string> classes = {"x", "y", "z"};
  const DataSet data = OpenForTest(options, {12, 12, 3}, {classes});
  EXPECT_EQ(data.test->size(), 10);
  EXPECT_EQ(data.shape, (SampleShape{12, 12, 3}));
  Pictures parts;
  parts.Add("a/x/1.jpg", 1);
  parts.Add("b/x/1.jpg", 1);
  parts.Add("b/x/2.jpg", 1);
  options.source = "images:" + parts.path();
  EXPECT_EQ(OpenForTest(options, {12, 12, 3}, {classes}).test->size(), 2);
}

TEST(Images, OneFolderIsSplit) {
  Pictures pictures;
  for (int i = 0; i < 10; ++i) pictures.Add(fmt::format("{}/{}.jpg", i % 2 ? "x" : "y", i), 20 * i);
  DataOptions options = pictures.options();
  options.test_fraction = 0.3;
  const DataSet data = OpenData(options, 1);
  EXPECT_EQ(data.train->size(), 7);
  EXPECT_EQ(data.test->size(), 3);
  EXPECT_TRUE(data.train->cuts());
}

TEST(Images, MistakesAreNamed) {
  Pictures pictures;
  const auto refusal = [&](DataOptions options) { return Refusal([&] { OpenData(options, 1); }); };
  EXPECT_TRUE(Holds(refusal(pictures.options()), {"has no class folders", pictures.path()}));
  pictures.MakeFolder("cat");
  EXPECT_TRUE(Holds(refusal(pictures.options()), {"/cat", "this class has no images"}));
  pictures.Add("cat/1.jpg", 1);
  pictures.Add("2.jpg", 1);
  EXPECT_TRUE(Holds(refusal(pictures.options()), {"1 images outside", "2.jpg"}));
  pictures.Add("train/cat/1.jpg", 1);
  EXPECT_TRUE(Holds(refusal(pictures.options()), {"has train but no val"}));
  pictures.Add("val/dog/1.jpg", 1);
  EXPECT_TRUE(Holds(refusal(pictures.options()), {"val: class dog", "not one of the"}));
  DataOptions file = pictures.options();
  file.source += "/2.jpg";
  EXPECT_TRUE(Holds(refusal(file), {"is a file; expected a folder"}));
  DataOptions half = pictures.options();
  half.train_folder = "train";
  EXPECT_TRUE(Holds(refusal(half), {"set both or neither"}));
  EXPECT_TRUE(Holds(refusal({.source = "iris", .size = 8}), {"data.size", "images:DIR"}));
  EXPECT_TRUE(Holds(refusal({.source = "images:"}), {"has no path"}));
  Pictures odd;
  odd.Add("caf\xe9/1.jpg", 1);
  EXPECT_TRUE(Holds(refusal(odd.options()), {"/caf\xe9", "not UTF-8"}));
}

TEST(Images, OnlyFilesArePictures) {
  Pictures pictures;
  for (int i = 0; i < 3; ++i) pictures.Add(fmt::format("train/x/{}.jpg", i), 20 * i);
  pictures.Add("val/x/1.jpg", 7);
  ASSERT_EQ(mkfifo((pictures.path() + "/train/x/pipe.jpg").c_str(), 0600), 0);
  EXPECT_EQ(OpenData(pictures.options(), 1).train->size(), 3);
}

TEST(Images, ABrokenFileIsNamedWhenItIsRead) {
  Pictures pictures;
  for (int i = 0; i < 4; ++i) pictures.Add(fmt::format("train/x/{}.jpg", i), 20 * i);
  pictures.Add("val/x/1.jpg", 7);
  pictures.Write("train/x/2.jpg", "\xff\xd8\xff rubbish");
  const DataSet data = OpenData(pictures.options(), 1);
  std::vector<float> sample(data.shape.size());
  data.train->Read(1, sample);
  EXPECT_TRUE(Holds(Refusal([&] { data.train->Read(2, sample); }), {"train/x/2.jpg: "}));
}

// All that a network is shown in two epochs.
std::string HashOfEpochs(const DataSet& data, const DataOptions& options, int threads, int ranks) {
  const Normalizer normalizer = MakeNormalizer(*data.train, options);
  constexpr int kBatch = 6;
  std::vector<std::string> shown(2 * data.train->size());
  for (int rank = 0; rank < ranks; ++rank) {
    std::vector<float> inputs(2 * kBatch * data.shape.size());
    std::vector<int32_t> labels(2 * kBatch);
    std::vector<LabelMix> mixes(2 * kBatch);
    std::vector<Slot> slots;
    const Slot room{.inputs = inputs, .labels = labels, .mixes = mixes};
    for (size_t i = 0; i < 2; ++i) {
      slots.push_back(room.Part(i * kBatch, kBatch, size_t(data.shape.size())));
    }
    Loader loader(Feed::ForTraining(*data.train, normalizer, options, 5), slots, threads);
    for (int64_t epoch = 0; epoch < 2; ++epoch) {
      for (int64_t begin = 0; begin < data.train->size(); begin += kBatch) {
        const int64_t count = std::min<int64_t>(kBatch, data.train->size() - begin);
        const int64_t first = begin + count * rank / ranks,
                      last = begin + count * (rank + 1) / ranks;
        if (first == last) continue;
        loader.Want({epoch, first, last});
        const Filled& filled = loader.Take();
        for (int64_t i = 0; i < filled.count; ++i) {
          Sha256 hash;
          hash.Add(slots[filled.slot].inputs.subspan(i * data.shape.size(), data.shape.size()));
          shown[epoch * data.train->size() + first + i] =
              hash.Hex() + std::to_string(slots[filled.slot].labels[i]) + " " +
              std::to_string(slots[filled.slot].mixes[i].other) + " " +
              std::to_string(slots[filled.slot].mixes[i].share);
        }
        loader.Release();
      }
    }
  }
  EXPECT_GT(std::set<std::string>(shown.begin(), shown.end()).size(), shown.size() * 9 / 10);
  std::string all;
  for (const std::string& one : shown) all += one;
  return Sha256Hex(all);
}

// Resizing makes values between bytes, so these are the nearest.
TEST(Images, BytesAreTheRoundedValues) {
  Pictures pictures;
  for (int i = 0; i < 12; ++i) pictures.Add(fmt::format("{}/{}.jpg", i % 3, i), 20 * i);
  DataOptions options = pictures.options(16);
  options.augment = "random-resized-crop,flip,pad-crop,erase";
  const DataSet data = OpenData(options, 1);
  ASSERT_TRUE(data.train->has_bytes());
  const Normalizer normalizer = Normalizer::Identity(3);
  const Feed feed = Feed::ForTraining(*data.train, normalizer, options, 5);
  const auto count = static_cast<size_t>(feed.size()), values = size_t(data.shape.size());
  std::vector<float> inputs(count * values), drawn(values);
  std::vector<uint8_t> bytes(count * values);
  std::vector<int32_t> labels(count), others(count);
  std::vector<SampleChange> changes(count);
  const Positions all{.epoch = 1, .begin = 0, .end = feed.size()};
  feed.Fill(all, inputs.data(), labels.data());
  feed.Fill(all, {.inputs = {}, .labels = others, .bytes = bytes, .changes = changes});
  EXPECT_EQ(labels, others);
  const ByteLook look{16, 16, 3, normalizer.scale().data(), normalizer.shift().data()};
  for (size_t i = 0; i < count; ++i) {
    DrawSample(bytes.data() + i * values, look, changes[i], drawn.data());
    for (size_t k = 0; k < values; ++k) {
      ASSERT_NEAR(drawn[k], std::clamp(inputs[i * values + k], 0.0f, 1.0f), 0.502f / 255);
    }
  }
}

TEST(Images, ThreadsAndRanksShowTheSameBytes) {
  Pictures pictures;
  for (int i = 0; i < 23; ++i) pictures.Add(fmt::format("{}/{}.jpg", i % 3, i), 10 * i);
  DataOptions options = pictures.options(16);
  options.normalize = "imagenet";
  options.augment =
      "random-resized-crop,flip,pad-crop,randaugment,colour-jitter,erase,mixup,cutmix";
  const DataSet data = OpenData(options, 1);
  const std::string expected = HashOfEpochs(data, options, 0, 1);
  for (const int threads : {1, 4}) {
    for (const int ranks : {1, 2, 3}) {
      EXPECT_EQ(HashOfEpochs(data, options, threads, ranks), expected) << threads << " " << ranks;
    }
  }
}

}  // namespace
}  // namespace trireme
