// Numbers as labels: trained, judged, predicted, resumed, cross-validated, refused.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/random.h"
#include "base/text.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class RegressionTest : public WholeTest {
 protected:
  // price = 1000 + 50 * (2 a - b + 30 where kind is "big"), with a little noise.
  std::string Prices(int rows, uint64_t seed, bool labelled = true) {
    const Random random(seed);
    std::string text = labelled ? "a,kind,b,price\n" : "b,a,kind\n";
    for (int i = 0; i < rows; ++i) {
      const double a = random.Normal(uint64_t(4 * i)), b = random.Normal(uint64_t(4 * i + 1));
      const bool big = random.Bits(uint64_t(4 * i + 2)) % 2;
      const double price =
          1000 + 50 * (2 * a - b + (big ? 30 : 0)) + random.Normal(uint64_t(4 * i + 3));
      const char* kind = big ? "big" : "small";
      text += labelled ? fmt::format("{:.5f},{},{:.5f},{:.4f}\n", a, kind, b, price)
                       : fmt::format("{:.5f},{:.5f},{}\n", b, a, kind);
    }
    return text;
  }
  void SetUp() override { Write("prices.csv", Prices(400, 1)); }

  const Words kTrain = {
      "train", "--data",      "csv:prices.csv", "--model",   "mlp", "--epochs", "30",  "--batch",
      "32",    "--optimizer", "adam",           "--threads", "1",   "--lr",     "0.01"};
};

TEST_F(RegressionTest, IsFoundLearntAndToldInItsOwnUnit) {
  const Outcome run = Succeed(kTrain + Words{"--out", "r"});
  EXPECT_NE(run.err.find("column 4 ('price') holds numbers"), run.err.npos) << run.err;
  for (const char* part : {"test RMSE", "MAE", "R2 0.9"}) {
    EXPECT_NE(run.out.find(part), run.out.npos) << run.out;
  }
  EXPECT_EQ(run.out.find('%'), run.out.npos) << run.out;
  const Json summary = Summary("r");
  EXPECT_TRUE(summary.At("test_accuracy").IsNull());
  EXPECT_TRUE(summary.At("best_accuracy").IsNull());
  EXPECT_EQ(summary.Find("confusion"), nullptr);
  EXPECT_GT(summary.At("test_r2").AsDouble(), 0.99);
  EXPECT_LT(summary.At("test_rmse").AsDouble(), 60);  // the numbers' deviation is about 750
  EXPECT_LE(summary.At("test_mae").AsDouble(), summary.At("test_rmse").AsDouble());
  EXPECT_LE(summary.At("best_rmse").AsDouble(), summary.At("test_rmse").AsDouble());
  EXPECT_NE(Read("r/config.toml").find("task = \"regression\""), std::string::npos);
  EXPECT_NE(Read("r/config.toml").find("loss = \"squared-error\""), std::string::npos);
  double least = INFINITY;
  for (const Json& epoch : Epochs("r")) {
    EXPECT_EQ(epoch.Find("train_accuracy"), nullptr);
    least = std::min(least, epoch.At("test_rmse").AsDouble());
  }
  EXPECT_EQ(least, summary.At("best_rmse").AsDouble());

  const Json again = ParseJson(Succeed({"eval", "r", "--json"}).out, "eval");
  EXPECT_TRUE(again.At("test_accuracy").IsNull());
  for (const char* key : {"test_r2", "test_rmse", "test_mae"}) {
    EXPECT_EQ(again.At(key).AsDouble(), summary.At(key).AsDouble()) << key;
  }
  EXPECT_NE(Succeed({"eval", "r"}).out.find("R2         0.99"), std::string::npos);
  Write("more.csv", Prices(50, 9));
  const Json more = ParseJson(Succeed({"eval", "r", "--data", "csv:more.csv", "--json"}).out, "e");
  EXPECT_EQ(more.At("samples").AsInt(), 50);
  EXPECT_GT(more.At("test_r2").AsDouble(), 0.98);
  Refuse({"eval", "r", "--data", "iris"}, 1,
         {"iris is for classification, the model for regression"});

  Succeed({"report", "r"});
  const std::string page = Read("r/report.html");
  EXPECT_NE(page.find("test RMSE"), page.npos);
  EXPECT_EQ(page.find("test accuracy"), page.npos);
  EXPECT_NE(Succeed({"watch", "r", "--once"}).out.find("test RMSE"), std::string::npos);
  EXPECT_NE(Succeed({"list", "runs", "."}).out.find("RMSE"), std::string::npos);
}

TEST_F(RegressionTest, PredictionsAreNumbersInTheOrderOfTheFile) {
  Succeed(kTrain + Words{"--out", "r", "--quiet"});
  Write("new.csv", Prices(20, 5, false));
  const auto lines = Split(Succeed({"predict", "r", "new.csv", "--csv"}).out, '\n');
  ASSERT_GE(lines.size(), 21u);
  EXPECT_EQ(lines[0], "file,record,prediction");
  Write("true.csv", Prices(20, 5));
  const auto truth = Split(Read("true.csv"), '\n');
  double off = 0;
  for (size_t i = 1; i <= 20; ++i) {
    const double want = ParseNumber<double>(Split(truth[i], ',')[3]).value();
    const double got = ParseNumber<double>(Split(lines[i], ',')[2]).value();
    off += std::abs(want - got) / 20;
  }
  EXPECT_LT(off, 60);
  const Json first =
      ParseJson(Split(Succeed({"predict", "r", "new.csv", "--json"}).out, '\n')[0], "prediction");
  EXPECT_NEAR(first.At("prediction").AsDouble(),
              ParseNumber<double>(Split(lines[1], ',')[2]).value(), 0.01);
  EXPECT_EQ(Succeed({"predict", "r", "new.csv"}).out.find('%'), std::string::npos);
}

TEST_F(RegressionTest, RanksAndALaterStartGiveTheSameBits) {
  const Words words = With(kTrain, {"--epochs", "4"}) + Words{"--deterministic",
                                                              "--set",
                                                              "trainer.shards=6",
                                                              "--quiet",
                                                              "--set",
                                                              "data.validation_fraction=0.2",
                                                              "--set",
                                                              "optimizer.schedule=constant"};
  Succeed(words + Words{"--out", "one"});
  for (const char* ranks : {"2", "3"}) {
    Succeed(words + Words{"--out", "several", "--ranks", ranks});
    EXPECT_EQ(Hash("several"), Hash("one"));
    for (const char* key : {"test_r2", "test_rmse", "test_mae", "validation_rmse", "best_rmse"}) {
      EXPECT_EQ(Number("several", key), Number("one", key)) << ranks << " ranks, " << key;
    }
    std::filesystem::remove_all(At("several"));
  }
  Succeed(With(words, {"--epochs", "2"}) + Words{"--out", "part"});
  Succeed({"train", "--resume", "part", "--epochs", "4", "--quiet"});
  EXPECT_EQ(Hash("part"), Hash("one"));
  EXPECT_EQ(Number("part", "best_rmse"), Number("one", "best_rmse"));
}

// A large rate: the error grows again, and patience returns to the least one.
TEST_F(RegressionTest, PatienceGoesByTheRootMeanSquaredError) {
  Succeed(With(kTrain, {"--epochs", "200", "--lr", "0.03"}) +
          Words{"--set", "trainer.patience=3", "--out", "r", "--quiet", "--set",
                "optimizer.schedule=constant"});
  const Json summary = Summary("r");
  EXPECT_EQ(summary.At("end_reason").AsString(), "patience");
  EXPECT_EQ(summary.At("test_rmse").AsDouble(), summary.At("best_rmse").AsDouble());
}

TEST_F(RegressionTest, FoldsPoolTheErrorsOfAllSamples) {
  const Outcome run =
      Succeed(With(kTrain, {"--epochs", "5"}) + Words{"--folds", "3", "--out", "f"});
  EXPECT_NE(run.out.find("test RMSE"), run.out.npos) << run.out;
  const Json summary = Summary("f");
  EXPECT_EQ(summary.At("samples").AsInt(), 400);
  EXPECT_TRUE(summary.At("test_accuracy").IsNull());
  double squares = 0;
  for (const Json& fold : summary.At("runs").Items()) {
    squares += std::pow(fold.At("test_rmse").AsDouble(), 2) / 3;
  }
  EXPECT_NEAR(summary.At("test_rmse").AsDouble(), std::sqrt(squares), 0.01 * std::sqrt(squares));
  EXPECT_NE(Read("f/page.html").find("All folds together"), std::string::npos);
}

TEST_F(RegressionTest, ClassesRemainClasses) {
  std::string text = "a,b,grade\n";
  for (int i = 0; i < 100; ++i) text += fmt::format("{},{},{}\n", i % 7, i % 11, i % 3);
  Write("grades.csv", text);
  const Words train = {"train", "--model", "mlp", "--epochs", "2", "--quiet"};
  Succeed(train + Words{"--data", "csv:grades.csv", "--out", "c"});
  EXPECT_FALSE(Summary("c").At("test_accuracy").IsNull());
  EXPECT_EQ(Summary("c").Find("test_rmse"), nullptr);
  Succeed(train + Words{"--data", "csv:grades.csv", "--set", "data.task=regression", "--out", "n"});
  EXPECT_TRUE(Summary("n").At("test_accuracy").IsNull());
  Refuse(train + Words{"--data", "csv:prices.csv", "--set", "model.loss=cross-entropy"}, 2,
         {"cross-entropy", "the label is a number"});
  Refuse(train + Words{"--data", "csv:prices.csv", "--set", "trainer.target_accuracy=0.9"}, 2,
         {"trainer.target_accuracy", "number"});
  Refuse(train + Words{"--data", "csv:prices.csv", "--set", "data.balance=true"}, 2,
         {"data.balance", "number"});
  Refuse(train + Words{"--data", "iris", "--set", "data.task=regression"}, 2,
         {"data.task", "csv:FILE"});
  EXPECT_FALSE(std::filesystem::exists(At("runs")));
}

// Runs from before numbers could be predicted have no data.task: their numbers are classes.
TEST_F(RegressionTest, AnOlderRunGoesOnWithItsClasses) {
  std::string text = "a,number\n";
  for (int i = 0; i < 300; ++i) text += fmt::format("{},{}\n", i % 7, 1000 * (i % 60));
  Write("numbers.csv", text);
  Succeed({"train", "--data", "csv:numbers.csv", "--model", "mlp", "--epochs", "1", "--set",
           "data.task=classification", "--out", "old", "--quiet"});
  std::string config = Read("old/config.toml");
  const std::string line = "task = \"classification\"\n";
  const size_t at = config.find(line);
  ASSERT_NE(at, config.npos);
  Write("old/config.toml", config.erase(at, line.size()));
  Succeed({"train", "--resume", "old", "--epochs", "2", "--quiet"});
  EXPECT_EQ(Summary("old").At("classes").Items().size(), 60u);
  Succeed({"eval", "old"});
}

TEST_F(RegressionTest, DataInfoTellsTheRange) {
  const std::string text = Succeed({"data", "info", "csv:prices.csv"}).out;
  EXPECT_NE(text.find("a number to predict"), text.npos) << text;
  EXPECT_NE(text.find("numbers to predict, price"), text.npos) << text;
  const Json json = ParseJson(Succeed({"data", "info", "csv:prices.csv", "--json"}).out, "info");
  EXPECT_EQ(json.At("task").AsString(), "regression");
  EXPECT_GT(json.At("parts").At("train").At("target").At("deviation").AsDouble(), 500);
}

// A rare class is found, because its samples count more; the same bits on several ranks.
TEST_F(RegressionTest, BalancedClassesCountTheSame) {
  const Random random(3);
  std::string text = "a,b,k\n";
  for (int i = 0; i < 600; ++i) {
    const bool rare = i % 20 == 0;
    text += fmt::format("{:.4f},{:.4f},{}\n", random.Normal(uint64_t(2 * i)) + (rare ? 1.5 : 0),
                        random.Normal(uint64_t(2 * i + 1)), rare ? "rare" : "usual");
  }
  Write("rare.csv", text);
  const Words words = {"train",
                       "--data",
                       "csv:rare.csv",
                       "--model",
                       "mlp:2-8-2",
                       "--epochs",
                       "20",
                       "--batch",
                       "60",
                       "--quiet",
                       "--deterministic",
                       "--set",
                       "trainer.shards=6",
                       "--threads",
                       "1",
                       "--out"};
  const auto recall = [&](const std::string& run) {
    return Summary(run).At("per_class_recall").Items()[0].AsDouble();
  };
  Succeed(words + Words{"plain"});
  Succeed(words + Words{"balanced", "--set", "data.balance=true"});
  EXPECT_GT(recall("balanced"), recall("plain") + 0.3);
  Succeed(words + Words{"ranks", "--set", "data.balance=true", "--ranks", "3"});
  EXPECT_EQ(Hash("ranks"), Hash("balanced"));
  EXPECT_NE(Hash("plain"), Hash("balanced"));
}

}  // namespace
}  // namespace trireme::whole
