// A memory box as a process of its own, and runs whose weights lie in one. TRIREME_SERVER_KILLS in
// the environment asks for more kills of it (scripts/soak-async).
#include <algorithm>
#include <csignal>
#include <filesystem>
#include <limits>

#include "support/box_test.h"

namespace trireme::whole {
namespace {

// A run whose centre lies in a box of its own says so. The box dies five times: with its file
// nothing is lost, without one rank 0 puts its last snapshot into the next box.
TEST_F(MemoryBoxTest, ARunGoesOnWhenItsBoxIsKilled) {
  const int kills = Wanted("TRIREME_SERVER_KILLS", 5);
  const int64_t epochs = std::max(400, 100 * kills);
  for (const Words& more : {Words{"--file", "box"}, Words{}}) {
    const std::string run = more.empty() ? "renewed" : "kept";
    address_ = "127.0.0.1:0";
    auto box = Serve(more);
    ASSERT_TRUE(box);
    auto running = Start({"train",       "iris",
                          "--strategy",  "easgd",
                          "--set",       "strategy.centre=memory",
                          "--set",       "transport.memory=" + address_,
                          "--transport", "shm",
                          "--ranks",     "3",
                          "--epochs",    std::to_string(epochs),
                          "--set",       "strategy.snapshot_s=0.1",
                          "--set",       "trainer.evaluate_every=100",
                          "--set",       "trainer.checkpoint_epochs=0",
                          "--set",       "emulate.step_ms=0.5",
                          "--threads",   "1",
                          "--out",       run});
    for (int k = 0; k < kills; ++k) {
      const int64_t before = SavedStep(run);
      ASSERT_TRUE(AwaitStep(*running, run, before + 10)) << running->err();
      box->Kill(SIGKILL);
      box = Serve(more);
      ASSERT_TRUE(box);
    }
    const Outcome outcome = running->Wait(kTimeout);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_NE(outcome.err.find("the way to the common memory: tcp to " + address_),
              outcome.err.npos)
        << outcome.err;
    EXPECT_EQ(outcome.err.find("came back without its contents") != outcome.err.npos, more.empty())
        << outcome.err;
    ExpectIrisCountedOnce(run, epochs);
    EXPECT_GT(Number(run, "test_accuracy"), 0.85);
  }
}

// Whatever an earlier run has left there, workers begin with what rank 0 puts.
TEST_F(MemoryBoxTest, ARunTakesNothingFromTheOneBefore) {
  auto box = Serve();
  ASSERT_TRUE(box);
  for (const char* strategy : {"hybrid", "pgas"}) {
    const Words words = {"train",
                         "iris",
                         "--strategy",
                         strategy,
                         "--transport",
                         "shm",
                         "--ranks",
                         "4",
                         "--epochs",
                         "60",
                         "--quiet",
                         "--set",
                         "transport.memory=" + address_,
                         "--out"};
    const std::string name = strategy;
    Succeed(words + Words{name + "-first"});
    const auto memory = Connect();
    for (const char* region : {"centre", "inbox.0", "inbox.1", "inbox.2"}) {
      if (name == "hybrid" && std::string(region) != "centre") continue;
      const Region left = memory->Open(region, After(kTimeout));
      const std::vector<float> wrong(left.length, std::numeric_limits<float>::quiet_NaN());
      memory->Put(left, 0, wrong).Wait();
    }
    Succeed(words + Words{name + "-second"});
    EXPECT_GT(Number(name + "-second", "test_accuracy"), 0.85) << name;
  }
}

TEST_F(MemoryBoxTest, RunsThatCannotUseABoxSaySo) {
  const auto with = [](const std::string& boxes, const Words& more) {
    return Words{"train", "iris", "--epochs", "1", "--set", "transport.memory=" + boxes} + more;
  };
  Refuse(with("127.0.0.1:7118", {}), 2, {"transport.memory", "allreduce", "unset it"});
  Refuse({"train", "iris", "--epochs", "1", "--set", "transport.memory_way=tcp"}, 2,
         {"transport.memory_way", "names none"});
  Refuse(with("here", {"--strategy", "pgas", "--ranks", "3"}), 2, {"'here' is not HOST:PORT"});
  Refuse(with("127.0.0.1:1,",
              {"--strategy", "pgas", "--ranks", "3", "--set", "transport.timeout_s=1"}),
         1, {"127.0.0.1:1"});
}

// Where there is the plugin: weights of 90 KB go beside the connection, and the log says so.
TEST_F(MemoryBoxTest, ARunNamesTheWayThatLongValuesTake) {
  const auto plugin = std::filesystem::path(TRIREME_PROGRAM).parent_path() / "trireme-fabric.so";
  if (!std::filesystem::exists(plugin)) GTEST_SKIP() << "no libfabric plugin: " << plugin;
  const auto train = [&](const char* way, const std::string& run) {
    return Words{"train",
                 "--data",
                 "synthetic:8x8x1:10:400",
                 "--model",
                 "mlp:64-300-10",
                 "--batch",
                 "20",
                 "--strategy",
                 "easgd",
                 "--set",
                 "strategy.centre=memory",
                 "--set",
                 "transport.memory=" + address_,
                 "--set",
                 std::string("transport.memory_way=") + way,
                 "--transport",
                 "shm",
                 "--ranks",
                 "3",
                 "--epochs",
                 "3",
                 "--out",
                 run};
  };
  {
    const auto plain = Serve();
    ASSERT_TRUE(plain);
    const Outcome none = Run(train("fabric", "none"));
    EXPECT_EQ(none.exit_code, 1);
    for (const char* part : {"offers no fabric", "--fabric", "transport.memory_way"}) {
      EXPECT_NE(none.err.find(part), std::string::npos) << none.err;
    }
  }
  address_ = "127.0.0.1:0";
  auto box = Serve({"--fabric", "tcp;ofi_rxm"});
  ASSERT_TRUE(box);
  EXPECT_NE(box->err().find(", fabric (tcp;ofi_rxm)"), std::string::npos) << box->err();
  const std::string taken = "the way to the common memory: ";
  const Outcome fabric = Succeed(train("fabric", "fabric"));
  EXPECT_NE(fabric.err.find(taken + "fabric (tcp;ofi_rxm) to " + address_), std::string::npos)
      << fabric.err;
  const Outcome tcp = Succeed(train("tcp", "tcp"));
  EXPECT_NE(tcp.err.find(taken + "tcp to " + address_), std::string::npos) << tcp.err;
  const Outcome faster = Succeed(train("auto", "auto"));
  EXPECT_NE(faster.err.find("GB/s, by "), std::string::npos) << faster.err;
  Refuse({"memory-box", "--fabric", "nothing"}, 1, {"the provider nothing of libfabric"});
}

TEST_F(MemoryBoxTest, QuietRunsSayNothingOfTheirMemory) {
  const Outcome outcome = Succeed({"train", "iris", "--strategy", "pgas", "--ranks", "3",
                                   "--epochs", "2", "--quiet", "--out", "a"});
  EXPECT_EQ(outcome.err.find("memory"), outcome.err.npos) << outcome.err;
}

TEST_F(MemoryBoxTest, SaysWhatItHoldsAndEndsByASignal) {
  auto box = Serve();
  ASSERT_TRUE(box);
  {
    const auto memory = Connect();
    memory
        ->Accumulate(memory->Create("weights", RegionType::kF32, 1000), 0,
                     std::vector<float>(1000, 1))
        .Wait();
  }
  const Outcome status = Succeed({"memory-box", "--status", address_});
  EXPECT_NE(status.out.find("weights: 1,000 f32 values, version 1"), status.out.npos) << status.out;
  Refuse({"memory-box", "--listen", address_, "--size", "1M"}, 1, {"cannot listen", address_});
  box->Kill(SIGTERM);
  EXPECT_EQ(box->Wait(kTimeout).exit_code, 143);
}

TEST_F(MemoryBoxTest, RefusesWhatCannotBe) {
  Refuse({"memory-box", "--size", "many"}, 2, {"--size", "many"});
  Refuse({"memory-box", "--size", "99999999999999G"}, 2, {"--size"});
  Refuse({"memory-box", "--size", "1"}, 2, {"--size", "at least 1M"});
  Refuse({"memory-box", "--size", "0G"}, 2, {"--size", "at least 1M"});
  Refuse({"memory-box", "--threads", "0"}, 2, {"--threads"});
  Refuse({"memory-box", "--snapshot-s", "-1"}, 2, {"--snapshot-s"});
  Refuse({"memory-box", "--listen", "here"}, 2, {"'here'", "ADDRESS:PORT"});
  Refuse({"memory-box", "--status", "here"}, 2, {"'here'", "HOST:PORT"});
  Write("other", "this is something else");
  Refuse({"memory-box", "--file", "other"}, 1, {"other", "not a memory box's file"});
  Refuse({"memory-box", "--file", "nowhere/box"}, 1, {"nowhere/box"});
  // Ends, though one of its two processes fails.
  Refuse({"bench", "memory", "--bytes", "64", "--repeat", "1", "--fabric", "nonsense"}, 1,
         {"libfabric"});
}

}  // namespace
}  // namespace trireme::whole
