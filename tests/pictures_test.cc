// Whole runs on folders of pictures.
#include <algorithm>
#include <sstream>

#include "image/testing.h"
#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

class PicturesTest : public RanksTest {
 protected:
  // Two classes of pictures of many sizes, JPEG and PNG, in two parts.
  PicturesTest() {
    setenv("XDG_CACHE_HOME", At("cache").c_str(), 1);
    for (const std::string part : {"train", "val"}) {
      for (int i = 0; i < 22; ++i) {
        const RgbPicture picture = SmoothPicture(24 + 3 * i, 60 - 2 * i);
        const bool png = i % 3 == 0;
        const std::string folder = "set/" + part + (i % 2 ? "/odd/" : "/even/");
        MakeDirectories(At(folder));
        Write(folder + std::to_string(i) + (png ? ".png" : ".jpg"),
              png ? MakePng(picture) : MakeJpeg(picture));
      }
    }
  }

  // Six shards in a step of 12, two epochs of two steps, the second of 10 samples.
  const Words kTrain = {"train",
                        "--model",
                        "mlp",
                        "--data",
                        "images:" + At("set"),
                        "--batch",
                        "12",
                        "--epochs",
                        "2",
                        "--lr",
                        "0.05",
                        "--deterministic",
                        "--threads",
                        "1",
                        "--set",
                        "trainer.shards=6",
                        "--set",
                        "data.size=16",
                        "--set",
                        "data.augment=random-resized-crop,flip,erase",
                        "--quiet"};

  // Every line of the workers' ledgers: step, epoch, position, sample.
  std::vector<std::string> Ledger(const std::string& folder, int workers) const {
    std::vector<std::string> lines;
    for (int i = 0; i < workers; ++i) {
      std::istringstream file(Read(folder + "/worker-" + std::to_string(i) + ".csv"));
      std::string line;
      std::getline(file, line);  // the header
      while (std::getline(file, line)) lines.push_back(line);
    }
    std::sort(lines.begin(), lines.end());
    return lines;
  }
};

// The weights are a hash of every byte that was trained on: shards are added in their order, so
// nothing else differs.
TEST_F(PicturesTest, RanksAndLoaderThreadsTrainOnTheSameBytes) {
  std::string hash;
  std::vector<std::string> samples;
  for (const Transport transport : {"threads", "shm"}) {
    for (const int ranks : {1, 2, 3}) {
      for (const std::string threads : {"1", "4", "auto"}) {
        const std::string run = transport + std::to_string(ranks) + threads;
        TrainRanks(transport, ranks,
                   kTrain + Words{"--set", "data.threads=" + threads, "--set",
                                  "data.ledger=" + At("ledger-" + run), "--out", run});
        if (HasFailure()) return;
        const auto seen = Ledger("ledger-" + run, ranks);
        if (hash.empty()) {
          hash = Hash(run);
          samples = seen;
          EXPECT_EQ(samples.size(), 2u * 22);
        }
        EXPECT_EQ(Hash(run), hash) << run;
        EXPECT_EQ(seen, samples) << run;
        EXPECT_EQ(Summary(run).At("confusion").Text(), Summary("threads11").At("confusion").Text());
        if (threads == "auto") continue;
        EXPECT_EQ(Number(run, "loader_threads"), std::stoi(threads));
      }
    }
  }
}

// With fewer and smaller pictures, and a smaller network.
TEST_F(PicturesTest, ShippedRecipesTrain) {
  for (const std::string recipe : {"flowers-resnet18", "imagenet-resnet50"}) {
    Succeed({"train", recipe, "--model", "resnet18", "--data", "images:" + At("set"), "--batch",
             "4", "--steps", "2", "--set", "data.size=32", "--set", "trainer.shards=0", "--set",
             "optimizer.warmup_epochs=0.2", "--quiet", "--out", recipe});
    EXPECT_EQ(Number(recipe, "steps"), 2) << recipe;
  }
  Succeed({"train", "scenes-mlp", "--data", "images:" + At("set"), "--model", "mlp:67500-128-64-2",
           "--steps", "2", "--quiet", "--out", "scenes-mlp"});
  EXPECT_EQ(Number("scenes-mlp", "steps"), 2);
}

TEST_F(PicturesTest, PredictGoesOnAfterPicturesThatCannotBeRead) {
  Succeed(kTrain + Words{"--out", "a"});
  Write("no.jpg", "no picture");
  Write("cut.jpg", Read("set/val/odd/7.jpg").substr(0, 300));
  auto running = Start({"predict", "a", "set/val/odd/1.jpg", "no.jpg", "cut.jpg", "missing.jpg",
                        "set/val/even/2.jpg"});
  const Outcome outcome = running->Wait(kTimeout);
  EXPECT_EQ(outcome.exit_code, 1);
  const size_t first = outcome.out.find("set/val/odd/1.jpg 0  ");
  EXPECT_EQ(first, 0u) << outcome.out;
  EXPECT_NE(outcome.out.find("\nset/val/even/2.jpg 0  "), std::string::npos) << outcome.out;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 2) << outcome.out;
  for (const std::string words :
       {"no.jpg: ", "cut.jpg: ", "missing.jpg: ", "3 of 5 files could not be read"}) {
    EXPECT_NE(outcome.err.find(words), std::string::npos) << words << " in " << outcome.err;
  }
}

TEST_F(PicturesTest, TheSummaryCountsWhatWasLeftOut) {
  Succeed(kTrain + Words{"--out", "whole"});
  EXPECT_EQ(Summary("whole").Find("left_out"), nullptr);
  Write("set/train/odd/broken.jpg", "no picture");
  Write("set/val/even/broken.png", "none either");
  const Words skip = {"--set", "data.on_error=skip"};
  Succeed(kTrain + skip + Words{"--out", "part"});
  EXPECT_EQ(Number("part", "left_out"), 2);
  EXPECT_EQ(Hash("part"), Hash("whole"));
}

TEST_F(PicturesTest, SmallOnesAreSeenAtTheirOwnSizeWithoutARecipe) {
  for (int i = 0; i < 10; ++i) {
    const std::string folder = std::string("small/set/") + (i % 2 ? "a/" : "b/");
    MakeDirectories(At(folder));
    Write(folder + std::to_string(i) + ".png", MakePng(SmoothPicture(24, 24)));
  }
  const Words train = {"train",   "--model", "mlp", "--data", "images:" + At("small"),
                       "--steps", "1"};
  const Outcome own = Succeed(train + Words{"--out", "own"});
  EXPECT_NE(own.err.find("data.size 24, data.centre 1"), std::string::npos) << own.err;
  EXPECT_NE(Read("own/config.toml").find("size = 24\n"), std::string::npos);
  EXPECT_EQ(Succeed({"train", "--resume", "own", "--steps", "2"}).err.find("data.size"),
            std::string::npos);
  const Json all =
      ParseJson(Succeed({"eval", "own", "--data", "images:" + At("small"), "--json"}).out, "eval");
  EXPECT_EQ(all.At("samples").AsInt(), 10);
  Succeed(train + Words{"--out", "large", "--set", "data.size=40"});
  EXPECT_NE(Read("large/config.toml").find("size = 40\n"), std::string::npos);
  Write("small.toml", "[model]\nname = \"mlp\"\n[data]\nsource = \"images:" + At("small") + "\"\n");
  EXPECT_NE(Succeed({"train", "small.toml", "--dry-run"}).out.find(" 30105600 "),
            std::string::npos);
}

// Odd and even pictures look the same: some are taken for the other class.
TEST_F(PicturesTest, MistakesAreShownAndDoNotDependOnRanks) {
  for (const std::string ranks : {"1", "3"}) {
    Succeed(kTrain + Words{"--ranks", ranks, "--out", "r" + ranks});
  }
  const std::string file = Read("r1/mistakes.json");
  EXPECT_EQ(Read("r3/mistakes.json"), file);
  const Json mistakes = ParseJson(file, "mistakes");
  const auto& list = mistakes.At("mistakes").Items();
  ASSERT_FALSE(list.empty());
  ASSERT_LE(list.size(), 16u);
  double before = 1;
  for (const Json& one : list) {
    EXPECT_EQ(one.At("sample").AsString().find(one.At("label").AsString() + "/"), 0u);
    EXPECT_NE(one.At("label").AsString(), one.At("prediction").AsString());
    EXPECT_LE(one.At("probability").AsDouble(), before);
    EXPECT_GE(one.At("probability").AsDouble(), 0.5);
    before = one.At("probability").AsDouble();
  }
  const std::string page = Succeed({"report", "r1", "--out", "-"}).out;
  for (const Json& one : list) {
    EXPECT_NE(page.find("base64," + one.At("picture").AsString() + "\""), page.npos);
  }
  EXPECT_EQ(Succeed({"report", "r1", "r3", "--out", "-"}).out.find("base64,"), page.npos);
}

TEST_F(PicturesTest, AContactSheetHasTheFirstOfEachClass) {
  Write("set/train/even/0.png", "no picture");  // is passed over
  Write("set/train/odd/11.jpg", Read("set/train/odd/11.jpg").substr(0, 300));
  const std::string text = Succeed({"data", "info", "images:" + At("set"), "--page", "p.html"}).out;
  EXPECT_NE(text.find("cannot be read"), text.npos);
  const std::string page = Read("p.html");
  size_t count = 0;
  for (size_t at = 0; (at = page.find("<img ", at)) != page.npos; ++at) ++count;
  EXPECT_EQ(count, 18u);
  for (const char* words : {"even (11)", "odd (11)", "even/10.jpg", "odd/13.jpg"}) {
    EXPECT_NE(page.find(words), page.npos) << words;
  }
  EXPECT_EQ(Succeed({"data", "info", "images:" + At("set"), "--quick", "--page", "-"}).out, page);
}

// The parts hold the same pictures; one is cut short.
TEST_F(PicturesTest, InfoFindsWhatIsSharedAndBroken) {
  Write("set/train/odd/5.jpg", Read("set/train/odd/5.jpg").substr(0, 300));
  const Words info = {"data", "info", "images:" + At("set")};
  const Json json = ParseJson(Succeed(info + Words{"--json"}).out, "info");
  const Json &train = json.At("parts").At("train"), &test = json.At("parts").At("test");
  EXPECT_EQ(train.At("samples").AsInt(), 22);
  EXPECT_EQ(train.At("classes").Text(), "[11,11]");
  ASSERT_EQ(train.At("broken").Items().size(), 1u);
  EXPECT_NE(train.At("broken").Items()[0].AsString().find("odd/5.jpg"), std::string::npos);
  EXPECT_EQ(train.At("sizes").Text(), "[[24,60],[42,48],[57,38]]");
  EXPECT_EQ(test.At("in_training").AsInt(), 21);
  EXPECT_TRUE(test.At("broken").Items().empty());
  EXPECT_EQ(json.At("contradictions").AsInt(), 0);
  const std::string text = Succeed(info).out;
  for (const char* line :
       {"44 images, 2 classes, 22 to train, 22 to test\n", "even: 11 to train, 11 to test\n",
        "channel 3: ", "21 samples of the test part are also in the training part\n",
        "1 sample of the training part cannot be read\n"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << text;
  }
}

TEST_F(PicturesTest, CommandsForPacksSayWhatTheyRead) {
  Write("table.csv", "1,2,a\n3,4,b\n1,2,a\n3,4,b\n1,2,a\n3,4,b\n1,2,a\n3,4,b\n1,2,a\n3,4,b\n");
  for (const Words& words : {Words{"verify"}, Words{"show"}}) {
    const Words number = words[0] == "show" ? Words{"0"} : Words{};
    Refuse(Words{"data"} + words + Words{At("set")} + number, 1, {"is a folder", "data pack"});
    Refuse(Words{"data"} + words + Words{"table.csv"} + number, 1, {"table.csv: is not a pack"});
    Refuse(Words{"data"} + words + Words{"csv:table.csv"} + number, 1,
           {"table.csv: is not a pack"});
    Refuse(Words{"data"} + words + Words{"none.pack"} + number, 1, {"none.pack"});
  }
  EXPECT_NE(Succeed({"data", "pack", At("set"), "a.pack"}).out.find("22 to train, 22 to test"),
            std::string::npos);
  for (const std::string pack : {"a.pack", "pack:a.pack"}) {
    const Outcome info = Succeed({"data", "info", pack, "--quick"});
    EXPECT_NE(info.out.find("22 to train, 22 to test"), std::string::npos) << info.out;
    EXPECT_NE(info.out.find("original files"), std::string::npos) << info.out;
  }
  Refuse({"data", "info", "table.csv"}, 2, {"did you mean csv:table.csv?"});
  Refuse({"data", "info", "pack:none.pack"}, 1, {"none.pack"});
}

}  // namespace
}  // namespace trireme::whole
