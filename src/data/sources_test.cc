#include "data/sources.h"

#include <algorithm>
#include <set>

#include "data/testing.h"

namespace trireme {
namespace {

std::vector<std::vector<float>> Samples(const Source& source) {
  std::vector<std::vector<float>> all;
  for (int64_t i = 0; i < source.size(); ++i) {
    all.emplace_back(source.shape().size());
    source.Read(i, all.back());
    all.back().push_back(static_cast<float>(source.label(i)));
  }
  return all;
}

std::string Refused(const DataOptions& options) {
  return Refusal([&] { OpenData(options, 1); });
}

// "0,0,a", "1,0,b", ...
std::string NumberedRows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += fmt::format("{},0,{}\n", i, i % 2 == 0 ? 'a' : 'b');
  return text;
}

TEST(OpenData, IrisIsBuiltIn) {
  const DataSet data = OpenData({}, 1);
  EXPECT_EQ(data.name, "iris");
  EXPECT_EQ(data.shape, (SampleShape{1, 1, 4}));
  EXPECT_EQ(data.classes,
            (std::vector<std::string>{"Iris-setosa", "Iris-versicolor", "Iris-virginica"}));
  EXPECT_EQ(data.train->size(), 120);
  EXPECT_EQ(data.test->size(), 30);
  const auto all = Samples(*data.train);
  int counts[3] = {};
  double sum = 0;
  for (const Source* part : {data.train.get(), data.test.get()}) {
    for (const auto& flower : Samples(*part)) {
      ++counts[static_cast<int>(flower[4])];
      sum += flower[0] + flower[1] + flower[2] + flower[3];
    }
  }
  for (const int count : counts) EXPECT_EQ(count, 50);
  EXPECT_NEAR(sum, 2078.2, 1e-3);  // 876.5 + 458.1 + 563.8 + 179.8, of the usual file
}

TEST(OpenData, SplitsAtRandomByTheSeedAloneAndLosesNothing) {
  const TemporaryFolder folder;
  const DataOptions options{.source = "csv:" + folder.Write("t.csv", NumberedRows(40)),
                            .test_fraction = 0.25};
  std::set<std::vector<std::vector<float>>> splits;
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const DataSet data = OpenData(options, seed);
    ASSERT_EQ(data.train->size(), 30);
    ASSERT_EQ(data.test->size(), 10);
    auto all = Samples(*data.train);
    EXPECT_EQ(Samples(*OpenData(options, seed).train), all);
    splits.insert(all);
    for (const auto& row : Samples(*data.test)) all.push_back(row);
    std::sort(all.begin(), all.end());
    for (int i = 0; i < 40; ++i) EXPECT_EQ(all[i][0], i);
  }
  EXPECT_EQ(splits.size(), 10u);
}

TEST(OpenData, LimitTakesSomeTrainingSamplesAndLeavesTheTest) {
  DataOptions options;
  const auto test = Samples(*OpenData(options, 3).test);
  const auto train = Samples(*OpenData(options, 3).train);
  options.limit = 20;
  const DataSet few = OpenData(options, 3);
  EXPECT_EQ(few.train->size(), 20);
  EXPECT_EQ(Samples(*few.test), test);
  std::set<float> labels;
  for (const auto& flower : Samples(*few.train)) {
    EXPECT_TRUE(std::find(train.begin(), train.end(), flower) != train.end());
    labels.insert(flower[4]);
  }
  EXPECT_EQ(labels.size(), 3u);
  options.limit = 1000;
  EXPECT_EQ(OpenData(options, 3).train->size(), 120);
}

TEST(OpenData, ValidationIsTakenFromTheTrainingPartAndMovesNothingElse) {
  const DataSet without = OpenData({}, 3);
  EXPECT_EQ(without.validation, nullptr);
  const auto test = Samples(*without.test);
  std::set<std::vector<std::vector<float>>> chosen;
  for (const uint64_t seed : {3, 4, 5}) {
    const DataSet data = OpenData({.validation_fraction = 0.25}, seed);
    EXPECT_EQ(data.validation->size(), 30);
    EXPECT_EQ(data.train->size(), 90);
    EXPECT_EQ(data.test->size(), 30);
    if (seed == 3) {
      EXPECT_EQ(Samples(*data.test), test);
      auto both = Samples(*data.train), train = Samples(*without.train);
      for (const auto& flower : Samples(*data.validation)) both.push_back(flower);
      std::sort(both.begin(), both.end());
      std::sort(train.begin(), train.end());
      EXPECT_EQ(both, train);
    }
    chosen.insert(Samples(*data.validation));
  }
  EXPECT_EQ(chosen.size(), 3u);
  const DataSet few = OpenData({.validation_fraction = 0.25, .limit = 10}, 3);
  EXPECT_EQ(few.train->size(), 10);
  EXPECT_EQ(Samples(*few.validation),
            Samples(*OpenData({.validation_fraction = 0.25}, 3).validation));
}

TEST(OpenData, ValidationOfAFoldIsTakenFromWhatItTrainsOn) {
  for (const int fold : {1, 2, 3}) {
    const DataSet with = OpenData({.validation_fraction = 0.1, .folds = 3, .fold = fold}, 3);
    const DataSet without = OpenData({.folds = 3, .fold = fold}, 3);
    EXPECT_EQ(Samples(*with.test), Samples(*without.test));
    EXPECT_EQ(with.train->size(), 90);
    EXPECT_EQ(with.validation->size(), 10);
  }
}

TEST(OpenData, CsvFilesMayBeOneForEachPart) {
  const TemporaryFolder folder;
  const std::string train = folder.Write("train.csv", "x,kind\n1,b\n2,a\n3,b\n");
  const std::string validation = folder.Write("validation.csv", "x,kind\n4,a\n");
  const std::string test = folder.Write("a,b.csv", "x,kind\n5,b\n6,a\n");
  using Rows = std::vector<std::vector<float>>;
  const DataSet two = OpenData({.source = "csv:" + train + "," + test}, 1);
  EXPECT_EQ(Samples(*two.train), (Rows{{1, 1}, {2, 0}, {3, 1}}));
  EXPECT_EQ(Samples(*two.test), (Rows{{5, 1}, {6, 0}}));
  EXPECT_EQ(two.validation, nullptr);
  const DataSet three = OpenData({.source = "csv:" + train + "," + validation + "," + test}, 1);
  EXPECT_EQ(Samples(*three.validation), (Rows{{4, 0}}));
  EXPECT_EQ(Samples(*three.test), Samples(*two.test));
  EXPECT_EQ(OpenData({.source = "csv:" + test}, 1).test->size(), 1);  // a comma in its name
  EXPECT_TRUE(Holds(Refused({.source = "csv:" + train + "," + test, .test_fraction = 0.5}),
                    {"data.test_fraction = 0.5", "test part of its own"}));
  EXPECT_TRUE(Holds(Refused({.source = "csv:" + train + "," + validation + "," + test,
                             .validation_fraction = 0.5}),
                    {"data.validation_fraction = 0.5", "validation part of its own"}));
  EXPECT_TRUE(Holds(Refused({.source = "csv:" + train + ",none.csv"}), {"cannot open none.csv"}));
  EXPECT_TRUE(Holds(Refused({.source = "csv:1,2,3,4"}), {"names 4 files", "csv:TRAIN,TEST"}));
  const std::string wide = folder.Write("wide.csv", "1,2,a\n");
  EXPECT_TRUE(Holds(Refused({.source = "csv:" + train + "," + wide}), {"wide.csv", "train.csv"}));
  const std::string other = folder.Write("other.csv", "x,kind\n1,c\n");
  EXPECT_TRUE(
      Holds(Refused({.source = "csv:" + train + "," + other}), {"other.csv:2", "label 'c'"}));
}

TEST(OpenData, CsvFilesOfAllPartsHaveTheSameColumns) {
  const TemporaryFolder folder;
  const std::string train = folder.Write("train.csv", "x,y,kind\n1,2,b\n2,3,a\n3,4,b\n");
  const std::string turned = folder.Write("turned.csv", "kind,y,x\nb,6,5\n");
  const DataSet data = OpenData({.source = "csv:" + train + "," + turned}, 1);
  EXPECT_EQ(Samples(*data.test), (std::vector<std::vector<float>>{{5, 6, 1}}));
  EXPECT_EQ(data.columns, (ColumnNames{{"x", "y"}, "kind", {}}));
  EXPECT_TRUE(data.notes.empty());
  const std::string bare = folder.Write("bare.csv", "x,y\n5,6\n");
  EXPECT_TRUE(Holds(Refused({.source = "csv:" + train + "," + bare}), {"bare.csv:1", "'kind'"}));
  const std::string other = folder.Write("other.csv", "x,z,kind\n5,6,a\n");
  EXPECT_TRUE(Holds(Refused({.source = "csv:" + train + "," + other}),
                    {"other.csv:1", "missing 'y', unknown 'z'"}));
}

TEST(OpenForTest, TakesAllWhereThereIsNoTestPart) {
  const TemporaryFolder folder;
  const std::vector<std::string> classes = {"a", "b"};
  const std::string csv = folder.Write("t.csv", NumberedRows(10));
  // What the run was trained with counts only where it says how to read.
  const DataOptions run = {.source = "csv:" + csv,
                           .id = "3",
                           .test_fraction = 0.5,
                           .validation_fraction = 0.5,
                           .folds = 3,
                           .limit = 2};
  DataOptions options = run;
  options.id = "";
  const DataSet all = OpenForTest(options, {1, 1, 2}, {classes});
  EXPECT_EQ(all.train, nullptr);
  EXPECT_EQ(all.test->size(), 10);
  options.source = "csv:" + csv + "," + folder.Write("u.csv", NumberedRows(4));
  EXPECT_EQ(OpenForTest(options, {1, 1, 2}, {classes}).test->size(), 4);
  options = run;
  options.size = 24;
  options.train_folder = options.test_folder = "x";
  options.on_error = "skip";
  options.source = "synthetic:2x2x1:2:50";
  const DataSet own = OpenForTest(options, {2, 2, 1}, {});
  EXPECT_EQ(own.test->size(), 10);
  EXPECT_NE(own.train, nullptr);
}

TEST(OpenData, GatherEqualsReadAndNormalise) {
  const TemporaryFolder folder;
  folder.Write("train-images-idx4-ubyte", Idx({30, 5, 4, 3}, SomeBytes(1800)));
  folder.Write("train-labels-idx1-ubyte", Idx({30}, SomeLabels(30, 3)));
  for (const std::string& source :
       {"idx:" + folder.path(), std::string("iris"), std::string("synthetic:5x4x3:3:30")}) {
    const DataSet data = OpenData({.source = source, .limit = 24}, 1);
    const Normalizer normalizer = FitNormalizer(*data.train, "standard");
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < 200; ++i) indices.push_back(i * 7 % data.train->size());
    const size_t values = data.shape.size();
    std::vector<float> gathered(200 * values), expected(values);
    std::vector<int32_t> labels(200);
    data.train->Gather(indices, normalizer, gathered.data(), labels.data());
    for (size_t i = 0; i < 200; ++i) {
      data.train->Read(indices[i], expected);
      normalizer.Apply(expected, expected.data());
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), &gathered[i * values])) << source;
      EXPECT_EQ(labels[i], data.train->label(indices[i]));
    }
  }
}

TEST(OpenData, KeepsLabelNumbersOfAnEarlierRun) {
  const TemporaryFolder folder;
  const std::vector<std::string> classes = {"z", "b", "a"};
  const DataSet data =
      OpenData({.source = "csv:" + folder.Write("t.csv", NumberedRows(10))}, 1, {classes});
  EXPECT_EQ(data.classes, classes);
  for (const auto& row : Samples(*data.train)) {
    EXPECT_EQ(row[2], static_cast<int>(row[0]) % 2 == 0 ? 2 : 1);
  }
}

TEST(OpenData, RefusesWhatMakesNoSense) {
  const TemporaryFolder folder;
  const std::string missing = folder.path() + "/missing";
  EXPECT_TRUE(
      Holds(Refused({.source = "imagenet"}), {"no source 'imagenet'", "iris", "mnist[:DIR]"}));
  EXPECT_TRUE(Holds(Refused({.source = ""}), {"no source ''"}));
  EXPECT_TRUE(Holds(Refused({.source = "mnits:x"}), {"did you mean mnist?"}));
  for (const auto& [name, word] :
       {std::pair("t.csv", "csv:"), std::pair("t", "csv:"), std::pair("t.pack", "pack:")}) {
    const std::string path = folder.Write(name, "1,a\n");
    EXPECT_TRUE(Holds(Refused({.source = path}), {"did you mean " + std::string(word) + path}));
  }
  EXPECT_TRUE(
      Holds(Refused({.source = folder.path()}), {"did you mean images:" + folder.path() + "?"}));
  EXPECT_TRUE(Holds(Refused({.source = std::string("csv:/\0x", 7)}), {"zero byte"}));
  EXPECT_TRUE(Holds(Refused({.source = "iris:x"}), {"iris:x", "takes no file"}));
  EXPECT_TRUE(Holds(Refused({.source = "csv"}), {"csv:FILE"}));
  setenv("TRIREME_DATA", missing.c_str(), 1);
  for (const std::string name : {"mnist", "cifar10"}) {
    EXPECT_TRUE(Holds(Refused({.source = name}), {"trireme data get " + name, name + ":DIR"}));
  }
  unsetenv("TRIREME_DATA");
  EXPECT_TRUE(Holds(Refused({.source = "csv:" + folder.path()}), {folder.path(), "is a folder"}));
  EXPECT_TRUE(Holds(Refused({.source = "mnist:" + missing}), {missing, "no folder"}));
  EXPECT_TRUE(Holds(Refused({.source = "cifar10:" + folder.Write("f", "x")}), {"/f is a file"}));
  EXPECT_TRUE(Holds(Refused({.source = "fashion-mnist:" + missing}), {missing, "no folder"}));
  EXPECT_TRUE(Holds(Refused({.label = "x"}), {"data.label, data.id", "iris"}));
  EXPECT_TRUE(Holds(Refused({.test_fraction = 0}), {"data.test_fraction", "got 0"}));
  EXPECT_TRUE(Holds(Refused({.test_fraction = 1}), {"data.test_fraction", "got 1"}));
  EXPECT_TRUE(Holds(Refused({.validation_fraction = 1}), {"data.validation_fraction", "got 1"}));
  EXPECT_TRUE(Holds(Refused({.limit = -1}), {"data.limit", "-1"}));
  EXPECT_TRUE(Holds(Refused({.source = "synthetic:2x2x1:2:10", .test_fraction = 0.1}),
                    {"data.test_fraction = 0.1", "test part of its own"}));
  EXPECT_TRUE(Holds(Refused({.source = "csv:" + folder.Write("one.csv", "1,a\n")}), {"label 'a'"}));
}

TEST(Synthetic, IsMadeOnDemandAndTheSameEveryTime) {
  const DataSet data = OpenData({.source = "synthetic:28x28x1:10:1000000000000"}, 1);
  EXPECT_EQ(data.train->size(), 1'000'000'000'000);
  EXPECT_EQ(data.test->size(), 200'000'000'000);
  EXPECT_EQ(data.classes.size(), 10u);
  std::vector<float> a(784), b(784);
  data.train->Read(999'999'999'999, a);
  OpenData({.source = "synthetic:28x28x1:10:1000000000000"}, 2).train->Read(999'999'999'999, b);
  EXPECT_EQ(a, b);
  data.test->Read(9, b);
  EXPECT_NE(a, b);
  EXPECT_TRUE(std::all_of(a.begin(), a.end(), [](float v) { return v >= 0 && v < 1; }));
  const DataSet few = OpenData({.source = "synthetic:1x1x3:2:1", .limit = 1}, 1);
  EXPECT_EQ(few.test->size(), 1);
}

// Even the nearest class mean tells the classes apart.
TEST(Synthetic, CanBeLearned) {
  for (const char* source : {"synthetic:9x13x3:5:500", "synthetic:1x1x40:5:500"}) {
    const DataSet data = OpenData({.source = source}, 1);
    std::vector<std::vector<double>> means(5, std::vector<double>(data.shape.size()));
    for (const auto& sample : Samples(*data.train)) {
      auto& mean = means[static_cast<int>(sample.back())];
      for (size_t i = 0; i < mean.size(); ++i) mean[i] += sample[i] / 100;
    }
    int right = 0;
    for (const auto& sample : Samples(*data.test)) {
      std::vector<double> distances;
      for (const auto& mean : means) {
        double distance = 0;
        for (size_t i = 0; i < mean.size(); ++i) {
          distance += (sample[i] - mean[i]) * (sample[i] - mean[i]);
        }
        distances.push_back(distance);
      }
      const auto nearest = std::min_element(distances.begin(), distances.end()) - distances.begin();
      right += nearest == static_cast<int>(sample.back());
    }
    EXPECT_EQ(right, 100) << source;
  }
}

TEST(Synthetic, RefusesOtherSpecs) {
  for (const char* bad : {"", "28x28:10:5", "28x28x1:10", "28x28x1:10:5:6", "ax28x1:10:5",
                          "28x28x1:10:5x", "28x28x1:10:-5"}) {
    const std::string message = Refused({.source = std::string("synthetic:") + bad});
    EXPECT_TRUE(Holds(message, {"synthetic"})) << bad;
  }
  EXPECT_TRUE(Holds(Refused({.source = "synthetic:0x28x1:10:5"}), {"the height", "between 1"}));
  EXPECT_TRUE(
      Holds(Refused({.source = "synthetic:2x2x1:1:5"}), {"number of classes", "between 2"}));
  EXPECT_TRUE(
      Holds(Refused({.source = "synthetic:2x2x1:2:99999999999999999999"}), {"number of samples"}));
  EXPECT_TRUE(Holds(Refused({.source = "synthetic:16384x16384x2:2:1"}), {"more than"}));
}

TEST(SourceKinds, EveryRowIsComplete) {
  for (const SourceKind& kind : SourceKinds()) {
    EXPECT_TRUE(std::string(kind.syntax).starts_with(kind.name));
    EXPECT_FALSE(std::string(kind.help).empty());
    EXPECT_NE(kind.open, nullptr);
  }
}

TEST(OpenRecords, SeesTheFormatAndChecksTheShape) {
  const TemporaryFolder folder;
  const std::vector<std::string> ten = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  const std::string idx = folder.Write("pictures", Gzip(Idx({3, 2, 2}, SomeBytes(12))));
  const std::string csv = folder.Write("rows", "1,2,3,4\n5,6,7,8\n");
  const std::string cifar = folder.Write("some.bin.gz", Gzip(CifarRecords(4)));
  for (const std::string& spec : {idx, "idx:" + idx}) {
    const Records records = OpenRecords(spec, {2, 2, 1}, {ten}, {});
    EXPECT_EQ(records.samples->size(), 3);
    EXPECT_FALSE(records.labelled);
    EXPECT_EQ(records.samples->label(0), -1);
  }
  for (const std::string& spec : {csv, "csv:" + csv}) {
    EXPECT_EQ(OpenRecords(spec, {2, 2, 1}, {ten}, {}).samples->size(), 2);
  }
  for (const std::string& spec : {cifar, "cifar10:" + cifar}) {
    EXPECT_TRUE(OpenRecords(spec, {32, 32, 3}, {ten}, {}).labelled);
  }
  EXPECT_TRUE(Holds(Refusal([&] {
                      OpenRecords(cifar, {2, 2, 1}, {ten}, {});
                    }),
                    {cifar, "32 x 32 x 3", "the model takes 2 x 2 x 1"}));
  const std::vector<std::string> two = {"0", "1"};
  EXPECT_TRUE(Holds(Refusal([&] {
                      OpenRecords(cifar, {32, 32, 3}, {two}, {});
                    }),
                    {cifar, "label 2 of record 2", "2 classes"}));
  EXPECT_TRUE(Holds(Refusal([&] {
                      OpenRecords(folder.path(), {2, 2, 1}, {two}, {});
                    }),
                    {folder.path(), "is a folder"}));
}

}  // namespace
}  // namespace trireme
