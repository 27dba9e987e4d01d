// What cannot be done is refused in one line that helps, before anything is written.
#include <filesystem>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

using UsageTest = WholeTest;

TEST_F(UsageTest, CombinationsThatMakeNoSenseAreRefusedWithTheReason) {
  const auto refuse = [&](const std::string& strategy, const Words& keys,
                          std::initializer_list<std::string> parts) {
    Words words = {"train", "--ranks", "3", "--strategy", strategy, "--out", "a"};
    for (const std::string& key : keys) words = words + Words{"--set", "strategy." + key};
    Refuse(words, 2, parts);
  };
  refuse("easgd", {"pace=clock"}, {"strategy.pace", "gradient", "elastic"});
  refuse("easgd", {"pace=round"}, {"average", "elastic"});
  refuse("easgd", {"pace=in-step"}, {"sync-ps"});
  refuse("downpour", {"centre=memory"}, {"strategy.merge", "needs a server", "elastic"});
  refuse("easgd", {"centre=memory", "merge=average", "pace=round"}, {"needs a server"});
  refuse("easgd", {"merge=moves"}, {"strategy.merge", "moves", "strategy.centre to memory"});
  refuse("easgd", {"centre=memory", "staleness=2"}, {"strategy.staleness = 2", "memory"});
  refuse("easgd", {"centre=memory", "servers=2"}, {"strategy.servers = 2", "memory"});
  refuse("easgd", {"centre=memory", "pace=round"}, {"strategy.pace", "free"});
  refuse("easgd", {"merge=difference"}, {"sync-ps"});
  refuse("async-ps", {"staleness=2", "stale=wait"}, {"halve", "elastic"});
  refuse("downpour", {"servers=2", "staleness=2", "stale=wait"}, {"strategy.servers = 2"});
  Refuse({"train", "--ranks", "4", "--strategy", "downpour", "--set", "strategy.servers=2",
          "--optimizer", "lars", "--out", "a"},
         2, {"strategy.servers = 2", "lars", "length of each tensor"});
  refuse("dogwild", {"staleness=2", "stale=wait"}, {"share weights"});
  refuse("ssp", {"stale=drop"}, {"strategy.stale"});
  refuse("ssp", {"push=2"}, {"strategy.push"});
  refuse("mpi-ps", {"groups=3"}, {"strategy.groups = 3", "2 workers"});
  refuse("allreduce", {"centre=server"}, {"easgd"});
  refuse("allreduce", {"centre=group", "groups=4"}, {"strategy.groups = 4", "3 workers"});
  refuse("allreduce", {"centre=group", "merge=elastic"}, {"averages weights"});
  refuse("hogwild", {"centre=group"}, {"alone or allreduce"});
  refuse("local-sgd", {"centre=none"}, {"never agree"});
  refuse("easgd", {"inner=broker"}, {"broker", "server has nothing to merge"});
  refuse("allreduce", {"merge=halve"}, {"adds up only gradients"});
  refuse("allreduce", {"pace=free"}, {"in step"});
  refuse("allreduce", {"overlap=both"}, {"strategy.overlap", "sync-ps"});
  refuse("allreduce", {"balance=rate"}, {"3 shards for 3 workers", "trainer.shards"});
  refuse("local-sgd", {"balance=rate"}, {"strategy.balance", "equal"});
  refuse("allreduce", {"balance=rate", "sync_batch_norm=true"}, {"strategy.sync_batch_norm"});
}

TEST_F(UsageTest, WordsThatNobodyKnows) {
  Refuse({"trian"}, 2, {"trian", "did you mean train"});
  Refuse({"train", "--bacth", "3"}, 2, {"--bacth", "did you mean --batch"});
  Refuse({"train", "--set", "trainer.bacth=3"}, 2, {"did you mean trainer.batch"});
  Refuse({"train", "--set", "trianer.batch=3"}, 2, {"trianer", "trainer"});
  Refuse({"train", "--set", "trainer.batch"}, 2, {"trainer.batch"});
  Refuse({"train", "--optimizer", "adan"}, 2, {"did you mean \"adam\""});
  Refuse({"train", "--strategy", "easgdd"}, 2, {"did you mean \"easgd\""});
  Refuse({"train", "--device", "gpu"}, 2, {"trainer.device", "cpu"});
  Refuse({"train", "--device", "cpu:1"}, 2, {"trainer.device", "\"cpu\"", "cpu:1"});
  Refuse({"train", "--model", "resnet19"}, 2, {"resnet19", "resnet18"});
  Refuse({"train", "--model", "mlp:4-x-3"}, 2, {"mlp:4-x-3"});
  Refuse({"train", "--data", "irs"}, 2, {"irs", "iris"});
  Refuse({"train", "iriss"}, 2, {"iriss", "did you mean iris"});
  Refuse({"train", "a", "b"}, 2, {"unexpected argument", "b"});
  Refuse({"list", "modles"}, 2, {"did you mean models"});
  Refuse({"--verbose"}, 2, {"unknown flag --verbose"});
  Refuse(
      {"launch", "pbs"}, 2,
      {"unknown command \"launch pbs\"; there are launch slurm, launch kubernetes, launch rank"});
  Refuse({"scale", "iris", "--to", "1000000000000"}, 2,
         {"--to must be between 1 and 1000000, got 1000000000000"});
  EXPECT_FALSE(Exists(At("runs")));
}

TEST_F(UsageTest, ValuesOutOfRange) {
  const Words values[] = {
      {"--batch", "0"},       {"--batch", "-3"},
      {"--batch", "many"},    {"--batch", "1e3"},
      {"--batch", ""},        {"--epochs", "0"},
      {"--epochs", "-1"},     {"--epochs", "nan"},
      {"--epochs", "inf"},    {"--steps", "-1"},
      {"--lr", "-0.1"},       {"--lr", "nan"},
      {"--lr", "fast"},       {"--ranks", "0"},
      {"--ranks", "99999"},   {"--threads", "0"},
      {"--threads", "1.5"},   {"--seed", "-1"},
      {"--seed", "1e400"},    {"--shuffle", "maybe"},
      {"--precision", "f64"}, {"--steps", "99999999999999999999"},
  };
  for (const Words& value : values) Refuse(Words{"train"} + value, 2, {value[0]});
  Refuse({"train", "--set", "trainer.accumulate=2000000000", "--ranks", "4"}, 2, {"accumulate"});
  Refuse({"train", "--set", "trainer.accumulate=1000000", "--ranks", "4"}, 2, {"accumulate"});
  Refuse({"train", "--epochs", "1e300"}, 2, {"epochs"});
  Refuse({"train", "--threads", "100000"}, 2, {"trainer.threads", "1024"});
  EXPECT_FALSE(Exists(At("runs")));
}

TEST_F(UsageTest, Contradictions) {
  Succeed({"train", "--steps", "1", "--out", "a"});
  Refuse({"train", "--batch", "4", "--set", "trainer.batch_per_worker=3"}, 2,
         {"trainer.batch", "trainer.batch_per_worker", "exclude"});
  Refuse({"train", "--set", "trainer.shards=4", "--set", "trainer.accumulate=2"}, 2,
         {"trainer.shards", "trainer.accumulate"});
  Refuse({"train", "--epochs", "5", "--steps", "3"}, 2,
         {"trainer.epochs (--epochs 5)", "trainer.steps (--steps 3)", "give one"});
  Refuse({"train", "--lr", "0.1", "--set", "optimizer.lr=0.2"}, 2,
         {"optimizer.lr is given twice", "--lr 0.1", "--set optimizer.lr=0.2"});
  Refuse({"train", "--set", "trainer.seed=1", "--set", "trainer.seed=2"}, 2, {"given twice"});
  Refuse({"sweep", "iris", "--vary", "trainer.steps=1,2", "--epochs", "3"}, 2, {"give one"});
  Refuse({"compare", "--strategies", "allreduce", "--steps", "1", "--epochs", "3"}, 2,
         {"give one"});
  Refuse({"compare", "--strategies", "allreduce", "--set", "transport.ranks=3"}, 2,
         {"transport.ranks", "--workers"});
  Refuse({"launch", "slurm", "--", "train", "--set", "transport.name=shm", "--out", "c"}, 2,
         {"transport.name is given twice"});
  Refuse({"train", "--resume", "a", "--out", "b"}, 2, {"--resume", "--out"});
  Refuse({"train", "--resume", "a", "--init", "b"}, 2, {"--resume", "--init"});
  Refuse({"train", "iris", "--resume", "a"}, 2, {"--resume", "recipe"});
  Refuse({"train", "--out", "a"}, 2, {"a", "--resume a"});
  Refuse({"train", "--strategy", "easgd"}, 2, {"easgd", "2 ranks", "transport.ranks"});
  Refuse({"train", "--model", "mlp:5-3"}, 2, {"mlp:5-3", "4"});
  Refuse({"train", "--model", "mlp:4-30-7"}, 2, {"7", "3", "--model mlp takes"});
  Refuse({"train", "--model", "cnn"}, 2, {"cnn"});
}

TEST_F(UsageTest, RunsThatAreNone) {
  Write("folder/file", "x");
  Write("file", "x");
  for (const std::string run : {"nothing", "folder", "file"}) {
    Refuse({"train", "--resume", run}, 2, {run, "not a run"});
    Refuse({"eval", run}, 2, {run, "not a run"});
    Refuse({"predict", run, "x.csv"}, 2, {run, "not a run"});
  }
  Refuse({"train", "--out", "folder"}, 2, {"folder", "not empty"});
  Refuse({"train", "--out", "file"}, 1, {"file"});
  Refuse({"train", "--out", "/proc/nowhere"}, 1, {"/proc/nowhere"});
  std::filesystem::create_symlink("gone", At("link"));
  Refuse({"train", "--out", "link"}, 1, {"link: is a dangling link to gone"});
  Refuse({"eval"}, 2, {"RUN is missing"});
}

TEST_F(UsageTest, MissingOrUselessData) {
  Write("empty.csv", "");
  Write("header.csv", "a,b,label\n");
  Write("ragged.csv", "1,2,x\n1,y\n");
  Write("single.csv", "1,2,x\n");
  Refuse({"train", "--data", "csv:nope.csv"}, 1, {"nope.csv"});
  Refuse({"train", "--data", "csv:."}, 1, {"folder"});
  Refuse({"train", "--data", "csv:empty.csv"}, 1, {"empty.csv"});
  Refuse({"train", "--data", "csv:header.csv"}, 1, {"header.csv"});
  Refuse({"train", "--data", "csv:ragged.csv"}, 1, {"ragged.csv", "2"});
  Refuse({"train", "--data", "csv:single.csv"}, 1, {"single.csv"});
  Refuse({"train", "--data", "mnist:nope"}, 1, {"nope"});
  Refuse({"train", "--data", "mnist:."}, 1, {"train-images"});
  Refuse({"train", "--data", "cifar10:."}, 1, {"data_batch"});
  Refuse({"train", "mnist-classic"}, 1, {"data/mnist", "name your copy with --data mnist:DIR"});
  Refuse({"train", "--data", "fashion-mnist:nope"}, 1, {"nope"});
  Refuse({"train", "--data", "synthetic:0x1x1:3:9"}, 2, {"synthetic"});
  Refuse({"train", "--data", "csv"}, 2, {"csv:FILE"});
  EXPECT_FALSE(Exists(At("runs")));
}

TEST_F(UsageTest, RecipesWithMistakesAreNamedWithTheirLine) {
  Write("key.toml", "[trainer]\nepochs = 3\nbacth = 4\n");
  Refuse({"train", "key.toml"}, 2, {"key.toml:3", "trainer.bacth", "trainer.batch"});
  Write("value.toml", "[trainer]\n\nepochs = \"three\"\n");
  Refuse({"train", "value.toml"}, 2, {"value.toml:3", "trainer.epochs"});
  Write("section.toml", "[trainr]\nepochs = 3\n");
  Refuse({"train", "section.toml"}, 2, {"section.toml", "trainr"});
  Write("broken.toml", "[trainer\nepochs = 3\n");
  Refuse({"train", "broken.toml"}, 2, {"broken.toml:1", "expected [section] or key = value"});
  Write("bytes.toml", std::string("\xff\xfe\0\1", 4));
  Refuse({"train", "bytes.toml"}, 2, {"bytes.toml"});
  Refuse({"train", "."}, 2, {"."});
}

TEST_F(UsageTest, TwoProcessesCannotTrainOneRun) {
  auto running =
      Start({"train", "--data", "synthetic:8x8x1:5:500", "--model", "mlp:64-32-5", "--steps",
             "100000000", "--set", "trainer.checkpoint_steps=50", "--quiet", "--out", "a"});
  ASSERT_TRUE(AwaitStep(*running, "a", 50));
  const Outcome outcome = Run({"train", "--resume", "a"});
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.err.find("a"), std::string::npos);
  Succeed({"eval", "a"});  // reading is allowed
}

TEST_F(UsageTest, HelpIsThere) {
  for (const Words& words : {Words{},
                             {"--help"},
                             {"help", "train"},
                             {"train", "--help"},
                             {"eval", "-h"},
                             {"predict", "--help"},
                             {"list"},
                             {"doctor"},
                             {"doctor", "--json"},
                             {"--version"},
                             {"train", "--help-config"}}) {
    EXPECT_NE(Succeed(words).out, "");
  }
}

}  // namespace
}  // namespace trireme::whole
