// Files that were cut, changed or replaced: another checkpoint is taken or the run is refused with
// the file's name; the program never dies of them.
#include <filesystem>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class DamageTest : public WholeTest {
 protected:
  void SetUp() override {
    Succeed({"train", "--steps", "60", "--set", "trainer.checkpoint_steps=20", "--set",
             "trainer.keep=2", "--set", "trainer.checkpoint_epochs=0", "--set",
             "optimizer.schedule=constant", "--out", "good"});
    hash_ = Hash("good");
  }

  // A copy of the good run.
  void Copy(const std::string& run) {
    std::filesystem::remove_all(At(run));
    std::filesystem::copy(
        At("good"), At(run),
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  }

  void FlipBit(const std::string& name, size_t byte) {
    std::string content = Read(name);
    content[byte % content.size()] ^= 0x10;
    Write(name, content);
  }

  // Step 60 is damaged: the run goes on from step 40 and arrives at the same place.
  void ExpectFallsBack(const std::string& run) {
    const Outcome evaluated = Succeed({"eval", run});
    EXPECT_NE(evaluated.err.find("going back to step 40"), std::string::npos) << evaluated.err;
    const Outcome resumed = Succeed({"train", "--resume", run});
    EXPECT_NE(resumed.err.find("going back to step 40"), std::string::npos) << resumed.err;
    EXPECT_EQ(Hash(run), hash_);
  }

  std::string hash_;
};

TEST_F(DamageTest, FilesThatWereCutShort) {
  for (const std::string name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    for (const double share : {0.0, 0.5, 0.99}) {
      Copy("a");
      const std::string path = Latest("a") + "/" + name, content = Read(path);
      Write(path, content.substr(0, size_t(share * double(content.size()))));
      ExpectFallsBack("a");
    }
  }
}

TEST_F(DamageTest, FlippedBits) {
  for (const std::string name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    for (const size_t byte : {0, 9, 300, 1500}) {
      Copy("a");
      const std::string path = Latest("a") + "/" + name;
      if (name == "state.json" && byte == 9) continue;
      FlipBit(path, byte);
      ExpectFallsBack("a");
    }
  }
}

TEST_F(DamageTest, MissingFilesAndLinks) {
  for (const std::string name : {"model.safetensors", "optimizer.safetensors", "state.json"}) {
    Copy("a");
    std::filesystem::remove(At(Latest("a") + "/" + name));
    ExpectFallsBack("a");
  }
  Copy("a");
  std::filesystem::remove(At("a/checkpoints/latest"));
  Succeed({"train", "--resume", "a"});
  EXPECT_EQ(Hash("a"), hash_);
}

TEST_F(DamageTest, AllDamagedIsRefused) {
  for (const char* step : {"step-00000040", "step-00000060"}) {
    FlipBit(std::string("good/checkpoints/") + step + "/model.safetensors", 2000);
  }
  Refuse({"train", "--resume", "good"}, 1, {"no checkpoint can be read", "model.safetensors"});
  Refuse({"eval", "good"}, 1, {"no checkpoint can be read", "damaged"});
  Refuse({"predict", "good", "x.csv"}, 1, {"no checkpoint can be read"});
}

TEST_F(DamageTest, AnEditedStateIsNotTrusted) {
  Copy("a");
  const std::string path = Latest("a") + "/state.json";
  std::string state = Read(path);
  state.replace(state.find("\"epochs_done\": 4"), 16, "\"epochs_done\": 9");
  Write(path, state);
  ExpectFallsBack("a");
}

TEST_F(DamageTest, AConfigThatIsNone) {
  for (const std::string& content :
       {std::string("garbage"), std::string("\0\xff\x80", 3), std::string("[model]\nname = 3\n"),
        std::string("[model]\nname = \"nothing\"\n"), std::string("[[[[[["),
        std::string("[trainer]\nbatch = -1\n")}) {
    Copy("a");
    Write("a/config.toml", content);
    Refuse({"train", "--resume", "a"}, 2, {});
    Refuse({"eval", "a"}, 2, {});
  }
}

TEST_F(DamageTest, AConfigOfAnotherModelNamesBothShapes) {
  std::string config = Read("good/config.toml");
  config.replace(config.find("4-30-20-3"), 9, "4-30-21-3");
  Write("good/config.toml", config);
  Refuse({"train", "--resume", "good"}, 1, {"20", "21"});
  Refuse({"eval", "good"}, 1, {"20", "21"});
}

TEST_F(DamageTest, MetricsThatWereCutShort) {
  const std::string metrics = Read("good/metrics.jsonl");
  Write("good/metrics.jsonl", metrics.substr(0, metrics.size() - 20));
  Succeed({"train", "--resume", "good", "--steps", "75"});
  for (const Json& epoch : Epochs("good")) EXPECT_GT(epoch.At("epoch").AsInt(), 0);
  Write("good/metrics.jsonl", std::string("\0\0\0\n\n{}\n[1]\n\xff\n", 15));
  Succeed({"train", "--resume", "good", "--steps", "90"});
}

}  // namespace
}  // namespace trireme::whole
