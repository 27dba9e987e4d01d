// A memory box as a process of its own: what it holds survives kill -9, of clients and of itself.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstring>
#include <map>

#include "support/whole_test.h"
#include "transport/memory/mapped.h"
#include "transport/shared_array.h"
#include "transport/tcp/memory_way.h"

namespace trireme::whole {
namespace {

class MemoryBoxTest : public WholeTest {
 protected:
  // Starts it until it listens: while a box was away its port may have been somebody else's.
  std::unique_ptr<Running> Serve(const Words& more = {}) {
    for (const Stopwatch watch; watch.seconds() < kTimeout;) {
      auto running = Start(Words{"memory-box", "--listen", address_, "--size", "32M", "--threads",
                                 "2", "--timeout-s", "120"} +
                           more);
      while (!running->Over()) {
        const std::string err = running->err(), words = "listening on ";
        const size_t at = err.find(words), end = err.find(',', at);
        if (at != err.npos && end != err.npos) {
          address_ = err.substr(at + words.size(), end - at - words.size());
          return running;
        }
        SleepFor(0.01);
      }
      SleepFor(0.1);
    }
    ADD_FAILURE() << "no box listens on " << address_;
    return nullptr;
  }
  std::unique_ptr<Memory> Connect() const {
    return ConnectTcp({.meet = address_, .timeout_s = kTimeout});
  }

  std::string address_ = "127.0.0.1:0";
};

// Whole numbers are exact, so the sum says whether each add is there once.
TEST_F(MemoryBoxTest, EveryAcknowledgedAddIsThereOnceWhoeverIsKilled) {
  constexpr int kClients = 16, kKilled = 5, kAdds = 50;
  constexpr uint64_t kLength = 20'000;
  auto box = Serve({"--file", "box"});
  ASSERT_TRUE(box);
  SharedArray<std::atomic<int>> acknowledged(kClients);
  std::vector<pid_t> clients;
  for (int c = 0; c < kClients; ++c) {
    const pid_t pid = fork();
    if (pid == 0) {
      int status = 0;
      try {
        // Some of them look at the file themselves.
        const auto memory = c % 4 == 3 ? ConnectMappedFile(At("box"), kTimeout) : Connect();
        const Region region = memory->Create("w", RegionType::kF32, kLength);
        const std::vector<float> ones(kLength, 1);
        for (int i = 0; i < kAdds; ++i) {
          const auto note = std::as_bytes(std::span<const int>(&c, 1));
          memory->Accumulate(region, 0, ones, note).Wait();
          ++acknowledged[c];
        }
      } catch (const std::exception& error) {
        std::fprintf(stderr, "client %d: %s\n", c, error.what());
        status = 1;
      }
      _exit(status);
    }
    clients.push_back(pid);
  }
  const auto memory = Connect();
  const Region region = memory->Open("w", After(kTimeout));
  for (int k = 0; k < kKilled; ++k) {
    memory->Wait(region, uint64_t(40 + 100 * k), After(kTimeout));
    kill(clients[size_t(3 * k)], SIGKILL);
    box->Kill(SIGKILL);
    box = Serve({"--file", "box"});
    ASSERT_TRUE(box);
  }
  for (int c = 0; c < kClients; ++c) {
    int status = -1;
    waitpid(clients[size_t(c)], &status, 0);
    const bool killed = c % 3 == 0 && c / 3 < kKilled;
    EXPECT_TRUE(killed || status == 0) << c;
  }
  uint64_t version = 0;
  std::vector<float> values(kLength);
  memory->Get(region, 0, values, &version).Wait();
  EXPECT_EQ(values, std::vector<float>(kLength, float(version)));
  std::map<int, int> added;
  for (const RegionNote& note : memory->Notes(region, 0)) {
    int client = -1;
    ASSERT_EQ(note.note.size(), sizeof(client));
    std::memcpy(&client, note.note.data(), sizeof(client));
    ++added[client];
  }
  for (int c = 0; c < kClients; ++c) {
    const bool killed = c % 3 == 0 && c / 3 < kKilled;
    // One may have been made whose client did not live to hear of it.
    const int unheard = added[c] - acknowledged[c];
    EXPECT_TRUE(unheard == 0 || (killed && unheard == 1)) << c << ": " << unheard;
    if (!killed) {
      EXPECT_EQ(acknowledged[c], kAdds) << c;
    }
  }
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
  Refuse({"memory-box", "--threads", "0"}, 2, {"--threads"});
  Refuse({"memory-box", "--snapshot-s", "-1"}, 2, {"--snapshot-s"});
  Refuse({"memory-box", "--listen", "here"}, 2, {"'here'", "ADDRESS:PORT"});
  Refuse({"memory-box", "--status", "here"}, 2, {"'here'", "HOST:PORT"});
  Write("other", "this is something else");
  Refuse({"memory-box", "--file", "other"}, 1, {"other", "not a memory box's file"});
  Refuse({"memory-box", "--file", "nowhere/box"}, 1, {"nowhere/box"});
}

}  // namespace
}  // namespace trireme::whole
