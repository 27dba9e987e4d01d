// --init: training starts from given weights.
#include <filesystem>
#include <string>
#include <vector>

#include "record/safetensors.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class InitTest : public WholeTest {
 protected:
  void SetUp() override {
    Succeed({"train", "--epochs", "5", "--out", "a"});
    weights_ = Latest("a") + "/model.safetensors";
    Write("x.csv", "5.1,3.5,1.4,0.2\n6.3,3.3,6.0,2.5\n");
  }

  // All but the last layer are as `weights_` has them, and that one is not.
  void ExpectFrozen(const std::string& run) {
    const SafetensorsReader before(At(weights_)), after(At(Latest(run) + "/model.safetensors"));
    const auto values = [](const SafetensorsReader& reader, const std::string& name) {
      const TensorInfo& tensor = *reader.Find(name);
      std::vector<float> read(tensor.count);
      reader.Read(tensor, read);
      return read;
    };
    for (const TensorInfo& tensor : before.tensors()) {
      const bool frozen = !tensor.name.starts_with("layers.4");
      EXPECT_EQ(values(after, tensor.name) == values(before, tensor.name), frozen)
          << run << " " << tensor.name;
    }
  }

  std::string weights_;
};

TEST_F(InitTest, OwnWeightsStayWhatTheyAre) {
  // A step of length (almost) zero.
  Succeed({"train", "--init", weights_, "--steps", "1", "--lr", "1e-30", "--out", "b"});
  EXPECT_EQ(Hash("a"), Hash("b"));
  EXPECT_EQ(Succeed({"predict", "a", "x.csv", "--logits"}).out,
            Succeed({"predict", "b", "x.csv", "--logits"}).out);
}

TEST_F(InitTest, AKilledRunGoesOnFromTheGivenWeights) {
  Succeed({"train", "--init", weights_, "--steps", "20", "--out", "b"});
  Succeed(
      {"train", "--init", weights_, "--steps", "20", "--out", "c", "--set", "trainer.keep=100"});
  Succeed({"train", "--resume", "c"});
  EXPECT_EQ(Hash("b"), Hash("c"));
}

TEST_F(InitTest, AnotherNumberOfClassesMakesTheLastLayerAnew) {
  Write("two.csv", "1,2,3,4,x\n2,3,4,5,y\n3,4,5,6,x\n4,5,6,7,y\n5,6,7,8,x\n");
  const Outcome outcome = Succeed({"train", "--data", "csv:two.csv", "--model", "mlp:4-30-20-2",
                                   "--init", weights_, "--steps", "2", "--out", "b"});
  EXPECT_NE(outcome.err.find("3 classes"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("random weights"), std::string::npos) << outcome.err;
}

TEST_F(InitTest, OtherShapesAreRefusedWithBoth) {
  const Words other = {"train", "--model", "mlp:4-31-20-3", "--init", weights_, "--out", "b"};
  Refuse(other, 1, {"30", "31", "trainer.init_except=layers.0"});
  Refuse(other + Words{"--set", "trainer.init_except=layer.0"}, 2, {"no layer", "layers.0"});
  EXPECT_FALSE(Exists(At("b")));
}

TEST_F(InitTest, LayersMayBeLeftOut) {
  Refuse({"train", "--set", "trainer.init_except=layers.0", "--out", "b"}, 2,
         {"trainer.init_except", "trainer.init gives none"});
  const Outcome outcome =
      Succeed({"train", "--model", "mlp:4-31-20-3", "--init", weights_, "--steps", "1", "--lr",
               "1e-30", "--out", "b", "--set", "trainer.init_except=layers.0 layers.2"});
  EXPECT_NE(outcome.err.find("random weights, not the file's, for layers.0, layers.2"),
            std::string::npos)
      << outcome.err;
}

TEST_F(InitTest, FilesThatAreNoWeights) {
  const std::string good = Read(weights_);
  Write("empty", "");
  Write("text", "these are no weights, and the first eight bytes are no length\n");
  Write("cut", good.substr(0, good.size() / 2));
  Write("header", good.substr(0, 20));
  Write("long", std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + good.substr(8));
  Write("huge", std::string("\x00\x00\x00\x10\x00\x00\x00\x00", 8) + good.substr(8));
  std::string offsets = good;
  offsets.replace(offsets.find("data_offsets\":["), 17, "data_offsets\":[-9");
  Write("offsets", offsets);
  Write("weights.pth", std::string("PK\x03\x04", 4) + good);
  Refuse({"train", "--init", "weights.pth", "--out", "b"}, 1,
         {"a PyTorch file", "safetensors.torch.save_file"});
  for (const std::string name : {"empty", "text", "cut", "header", "long", "huge", "offsets"}) {
    Refuse({"train", "--init", name, "--out", "b"}, 1, {name});
  }
  Refuse({"train", "--init", "nothing", "--out", "b"}, 1, {"nothing"});
  std::filesystem::create_directory(At("folder"));
  Refuse({"train", "--init", "folder", "--out", "b"}, 1, {"folder", "neither a checkpoint nor"});
  EXPECT_FALSE(Exists(At("b")));
}

// A run means its best checkpoint, and the config the file that it was: the run may go on.
TEST_F(InitTest, ARunOrACheckpointWillDo) {
  Succeed({"train", "--init", weights_, "--steps", "3", "--out", "b"});
  Succeed({"train", "--init", Latest("a"), "--steps", "3", "--out", "c"});
  Succeed({"train", "--init", "a/checkpoints/latest", "--steps", "3", "--out", "d"});
  EXPECT_EQ(Hash("b"), Hash("c"));
  EXPECT_EQ(Hash("b"), Hash("d"));
  EXPECT_EQ(Read("d/config.toml"), Read("c/config.toml"));

  Succeed({"train", "--resume", "a", "--epochs", "6"});
  std::filesystem::remove(At("a/checkpoints/best"));
  std::filesystem::create_symlink(std::filesystem::path(weights_).parent_path().filename(),
                                  At("a/checkpoints/best"));
  Succeed({"train", "--init", "a", "--steps", "3", "--out", "e"});
  EXPECT_EQ(Hash("b"), Hash("e"));
  EXPECT_NE(Read("e/config.toml").find("step-00000075/model.safetensors"), std::string::npos);
  std::filesystem::remove(At("a/checkpoints/best"));
  Succeed({"train", "--init", "a", "--steps", "3", "--out", "f"});
  EXPECT_NE(Hash("b"), Hash("f"));
}

const Words kFrozen = {"train",
                       "--set",
                       "model.freeze=up to layers.2",
                       "--set",
                       "optimizer.schedule=constant",
                       "--set",
                       "trainer.shards=6",
                       "--set",
                       "trainer.check_steps=5",
                       "--deterministic"};

TEST_F(InitTest, FrozenLayersKeepTheirBitsOnAnyNumberOfRanks) {
  const Words run = kFrozen + Words{"--init", weights_, "--steps", "20"};
  Succeed(run + Words{"--out", "one"});
  ExpectFrozen("one");
  for (const Words& ranks :
       {Words{"--ranks", "2"}, Words{"--ranks", "3"}, Words{"--ranks", "3", "--transport", "shm"},
        Words{"--ranks", "3", "--strategy", "sync-ps"},
        Words{"--ranks", "2", "--strategy", "bsp"}}) {
    const std::string out = "run-" + ranks[1] + "-" + ranks.back();
    Succeed(run + ranks + Words{"--out", out});
    EXPECT_EQ(Hash(out), Hash("one")) << out;
  }
}

TEST_F(InitTest, ARunWithFrozenLayersIsResumed) {
  const Words run = kFrozen + Words{"--init", weights_};
  Succeed(run + Words{"--steps", "40", "--out", "whole"});
  Succeed(run + Words{"--steps", "22", "--out", "parts"});
  Succeed({"train", "--resume", "parts", "--steps", "40"});
  EXPECT_EQ(Hash("parts"), Hash("whole"));
  Refuse({"train", "--resume", "parts", "--steps", "50", "--set", "model.freeze="}, 2,
         {"model.freeze cannot be changed"});
}

// A server hands out what is trained; ssp without staleness has the bits of a run in step.
TEST_F(InitTest, FrozenLayersBesideAServer) {
  const Words init = {"--init", weights_}, many = {"--steps", "40"};
  const Words ssp = {"--ranks", "3", "--strategy", "ssp", "--set", "strategy.staleness=0"};
  Succeed(kFrozen + init + many + Words{"--out", "one"});
  for (const std::string transport : {"threads", "shm", "tcp"}) {
    Succeed(kFrozen + init + many + ssp + Words{"--transport", transport, "--out", transport});
    EXPECT_EQ(Hash(transport), Hash("one")) << transport;
  }
  Succeed(kFrozen + init + ssp + Words{"--steps", "22", "--out", "parts"});
  std::filesystem::remove_all(At("a"));  // the checkpoint has them, too
  Succeed({"train", "--resume", "parts", "--steps", "40"});
  EXPECT_EQ(Hash("parts"), Hash("one"));
}

// Every checkpoint has them: the best one may be damaged.
TEST_F(InitTest, FrozenLayersBesideAServerComeFromAnyCheckpoint) {
  Succeed(kFrozen + Words{"--init", weights_, "--ranks", "3", "--strategy", "ssp", "--set",
                          "strategy.staleness=0", "--set", "trainer.evaluate_every=1", "--set",
                          "trainer.checkpoint_steps=10", "--steps", "22", "--out", "parts"});
  const std::string best = "parts/checkpoints/best/model.safetensors";
  ASSERT_NE(std::filesystem::canonical(At("parts/checkpoints/best")),
            std::filesystem::canonical(At("parts/checkpoints/latest")));
  std::string bytes = Read(best);
  bytes[bytes.size() / 2] ^= 1;
  Write(best, bytes);
  const Outcome resumed = Succeed({"train", "--resume", "parts", "--steps", "40"});
  EXPECT_NE(resumed.err.find("the best checkpoint is lost"), resumed.err.npos) << resumed.err;
  ExpectFrozen("parts");
}

TEST_F(InitTest, FrozenLayersStayWithEveryStrategyThatHasServers) {
  const Words run = {"train",    "--set", "model.freeze=up to layers.2", "--init", weights_,
                     "--epochs", "3"};
  for (const std::string strategy :
       {"async-ps", "downpour", "easgd", "ssp", "hybrid", "pgas", "federated"}) {
    const Words ranks = {"--ranks", strategy == "hybrid" ? "5" : "3", "--strategy", strategy};
    Succeed(run + ranks + Words{"--out", strategy});
    ExpectFrozen(strategy);
    EXPECT_GT(Number(strategy, "test_accuracy"), 0.6) << strategy;
  }
  Succeed(run + Words{"--ranks", "4", "--strategy", "easgd", "--set", "strategy.servers=2", "--out",
                      "parted"});
  ExpectFrozen("parted");
}

TEST_F(InitTest, FrozenLayersServeOtherClasses) {
  Write("two.csv", "1,2,3,4,x\n2,3,4,5,y\n3,4,5,6,x\n4,5,6,7,y\n5,6,7,8,x\n");
  Succeed({"train", "--data", "csv:two.csv", "--model", "mlp:4-30-20-2", "--init", weights_,
           "--steps", "2", "--set", "model.freeze=up to layers.2", "--out", "b"});
  const std::string plan = Succeed(kFrozen + Words{"--dry-run"}).out;
  EXPECT_NE(plan.find("frozen: 770 of 833 parameters, up to layer layers.2"), plan.npos) << plan;
}

TEST_F(InitTest, WhatCannotBeFrozenIsRefused) {
  Refuse({"train", "--set", "model.freeze=up to layer.2", "--out", "b"}, 2,
         {"model.freeze", "no layer \"layer.2\"", "layers.2"});
  Refuse({"train", "--set", "model.freeze=up to layers.4", "--out", "b"}, 2,
         {"leaves nothing to train"});
  Refuse({"train", "--ranks", "5", "--strategy", "dogwild", "--set", "model.freeze=up to layers.0",
          "--out", "b"},
         2, {"model.freeze", "dogwild"});
  Refuse({"train", "--optimizer", "lbfgs", "--set", "model.freeze=up to layers.0", "--out", "b"}, 2,
         {"model.freeze", "lbfgs"});
  EXPECT_FALSE(Exists(At("b")));
}

TEST_F(InitTest, WeightsThatAreNotFiniteAreRefused) {
  const std::string good = Read(weights_);
  for (const char* bits : {"\x00\x00\xc0\x7f", "\x00\x00\x80\xff"}) {  // not a number, -infinity
    Write("bad", good.substr(0, good.size() - 4) + std::string(bits, 4));
    Refuse({"train", "--init", "bad", "--out", "b"}, 1, {"bad", "tensor \"", "not finite"});
  }
  EXPECT_FALSE(Exists(At("b")));
}

TEST_F(InitTest, AFileWithoutOneOfTheTensorsIsRefused) {
  SafetensorsWriter writer(At("part"));
  const int64_t shape[] = {2};
  const float values[] = {1, 2};
  writer.Add("another", shape, values);
  writer.Finish();
  Refuse({"train", "--init", "part", "--out", "b"}, 1, {"part"});
}

TEST_F(InitTest, GivenWeightsLearnSlowlyAndWantTheirNormalisation) {
  Succeed({"train", "--data", "iris", "--model", "mlp:4-30-20-3", "--init", weights_, "--steps",
           "2", "--out", "b"});
  EXPECT_NE(Read("b/config.toml").find("lr = 0.0003"), std::string::npos);
  const std::string said = Succeed({"train", "--init", weights_, "--set", "data.normalize=minmax",
                                    "--steps", "2", "--out", "c"})
                               .err;
  EXPECT_NE(said.find("these weights expect data.normalize=standard"), said.npos) << said;
}

TEST_F(InitTest, TheConfigRepeatsTheRun) {
  Succeed({"train", "--init", weights_, "--steps", "20", "--out", "b"});
  Succeed({"train", "b/config.toml", "--out", "c"});
  EXPECT_EQ(Hash("b"), Hash("c"));
  Succeed({"train", "--steps", "20", "--out", "d"});
  EXPECT_NE(Hash("b"), Hash("d"));
}

}  // namespace
}  // namespace trireme::whole
