// Networks written as text: the run's own from its config.toml on.
#include "graph/models/example_networks_test.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

constexpr char kSmall[] = "# for Iris\nhidden: dense 12\nrelu\nout: dense classes\n";

class NetworksTest : public WholeTest {
 protected:
  // 20 steps of a model on made images.
  std::string HashOf(const std::string& model, const std::string& name) {
    Succeed({"train", "--model", model, "--data", "synthetic:32x32x3:10:128", "--steps", "20",
             "--batch", "4", "--lr", "0.01", "--set", "optimizer.warmup_epochs=0", "--set",
             "trainer.evaluate_every=0", "--quiet", "--out", name});
    return Hash(name);
  }
};

TEST_F(NetworksTest, CnnAndResNet18AsTextHaveTheBitsOfTheBuiltInOnes) {
  Write("cnn.txt", kCnnAsText);
  Write("resnet18.txt", kResNet18AsText);
  EXPECT_EQ(HashOf("text:cnn.txt", "a"), HashOf("cnn", "b"));
  EXPECT_EQ(HashOf("text:resnet18.txt", "c"), HashOf("resnet18", "d"));
}

TEST_F(NetworksTest, TheRunIsEnoughToGoOnEvaluateAndPredict) {
  Write("net.txt", kSmall);
  const Words train = {"train", "--data", "iris", "--model", "text:net.txt", "--seed", "1"};
  Succeed(train + Words{"--epochs", "4", "--out", "whole"});
  Succeed(train + Words{"--epochs", "2", "--set", "optimizer.schedule=constant", "--out", "a"});
  Shell("rm " + At("net.txt") + " && mv " + At("a") + " " + At("b"));
  Succeed({"train", "--resume", "b", "--epochs", "4"});
  EXPECT_NE(Read("b/config.toml").find("layers = \"\"\"\n# for Iris\nhidden: dense 12\n"),
            std::string::npos)
      << Read("b/config.toml");
  Succeed({"eval", "b"});
  Write("x.csv", "5.1,3.5,1.4,0.2\n");
  Succeed({"predict", "b", "x.csv"});
  Succeed({"report", "b"});
  // Its config.toml repeats the run.
  Succeed({"train", At("whole") + "/config.toml", "--out", "again"});
  EXPECT_EQ(Hash("whole"), Hash("again"));
}

TEST_F(NetworksTest, ARecipeHoldsTheText) {
  const std::string data = "[data]\nsource = \"iris\"\n[trainer]\nepochs = 1\n";
  Write("r.toml", data + "[model]\nlayers = \"\"\"\n" + kSmall + "\"\"\"\n");
  Write("both.toml", data + "[model]\nname = \"mlp\"\nlayers = \"\"\"\n" + kSmall + "\"\"\"\n");
  Write("net.txt", kSmall);
  const Words seed = {"--seed", "3", "--quiet", "--out"};
  Succeed(Words{"train", "r.toml"} + seed + Words{"a"});
  Succeed(Words{"train", "r.toml", "--model", "text:net.txt"} + seed + Words{"b"});
  Succeed(Words{"train", "r.toml", "--ranks", "3", "--transport", "tcp", "--deterministic"} + seed +
          Words{"c"});
  Succeed(Words{"train", "r.toml", "--set", "trainer.shards=3", "--deterministic"} + seed +
          Words{"d"});
  Succeed(Words{"train", "r.toml", "--model", "mlp"} + seed + Words{"e"});
  EXPECT_EQ(Hash("a"), Hash("b"));
  EXPECT_EQ(Hash("c"), Hash("d"));
  EXPECT_EQ(Read("e/config.toml").find("hidden"), std::string::npos);
  Refuse({"train", "both.toml"}, 2, {"model.name", "model.layers", "both.toml"});
  Refuse({"train", "--resume", "a", "--set", "model.layers=flatten"}, 2, {"model.layers"});
}

TEST_F(NetworksTest, ADryRunShowsTheShapeOfEveryLayer) {
  Write("net.txt", kCnnAsText);
  const std::string plan = Succeed({"train", "--data", "synthetic:28x28x1:10:64", "--model",
                                    "text:net.txt", "--dry-run"})
                               .out;
  for (const char* line :
       {"input                           28x28x1", "flatten                            3136"}) {
    EXPECT_NE(plan.find(line), std::string::npos) << plan;
  }
}

TEST_F(NetworksTest, WhatIsWrongIsOneLineAndNothingIsWritten) {
  Write("net.txt", "hidden: dense 12\nrelux\n");
  Write("bad.txt", std::string("dense 3\xff\n"));
  Write("empty.txt", "\n");
  const auto refuse = [&](const std::string& file, std::initializer_list<std::string> parts) {
    Refuse({"train", "--data", "iris", "--model", "text:" + file, "--out", "r"}, 2, parts);
    EXPECT_FALSE(Exists(At("r")));
  };
  refuse("net.txt", {"model.layers:2:1", "relux", "did you mean relu?"});
  refuse("bad.txt", {"bad.txt", "UTF-8"});
  refuse("empty.txt", {"empty.txt", "empty"});
  refuse("none.txt", {"none.txt"});
  refuse(".", {"."});
  Refuse({"train", "--data", "iris", "--model", "text"}, 2, {"model.layers", "text:FILE"});
}

TEST_F(NetworksTest, AnOnnxFileBecomesPartOfTheRun) {
  Succeed({"train", "--data", "iris", "--model", "mlp:4-9-3", "--epochs", "3", "--out", "a"});
  Succeed({"export", "a", "--onnx", "a.onnx"});
  const Words train = {"train", "--data", "iris", "--model", "onnx:a.onnx", "--quiet"};
  // A step of length (almost) zero.
  Succeed(train + Words{"--steps", "1", "--lr", "1e-30", "--out", "b"});
  EXPECT_EQ(Hash("a"), Hash("b"));
  const std::string config = Read("b/config.toml");
  for (const char* part : {"name = \"onnx:a.onnx\"", ": dense 9", ": dense classes",
                           "init = \"onnx:a.onnx\"", "normalize = \"given\""}) {
    EXPECT_NE(config.find(part), std::string::npos) << part << config;
  }
  const Words two = {"--set", "trainer.shards=2", "--steps", "4", "--deterministic", "--out"};
  Succeed(train + two + Words{"c"});
  Succeed(train + Words{"--ranks", "2", "--transport", "tcp"} + two + Words{"d"});
  EXPECT_EQ(Hash("c"), Hash("d"));
  Succeed({"train", "--data", "iris", "--model", "mlp:4-9-3", "--init", "onnx:a.onnx", "--steps",
           "1", "--lr", "1e-30", "--quiet", "--out", "e"});
  EXPECT_EQ(Hash("a"), Hash("e"));
  EXPECT_NE(Succeed(train + Words{"--dry-run"}).out.find("input"), std::string::npos);

  Shell("rm " + At("a.onnx"));
  Succeed({"train", "--resume", "b", "--steps", "3", "--quiet"});
  Succeed({"eval", "b"});
  Write("x.csv", "5.1,3.5,1.4,0.2\n");
  Succeed({"predict", "b", "x.csv"});
  Succeed({"export", "b", "--onnx", "b.onnx"});
  Refuse(train + Words{"--out", "f"}, 2, {"a.onnx"});
  Write("a.onnx", Read("b.onnx").substr(0, 300));
  Refuse(train + Words{"--out", "f"}, 2, {"onnx:a.onnx", "cut or damaged at byte"});
  EXPECT_FALSE(Exists(At("f")));
}

}  // namespace
}  // namespace trireme::whole
