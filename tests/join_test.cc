// Clients that join a run by hand, and strangers that may not.
#include <fmt/format.h>

#include <csignal>
#include <thread>

#include "base/text.h"
#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

class JoinTest : public RanksTest {
 protected:
  // A run that goes on until it is stopped; where its server listens.
  std::unique_ptr<Running> Serve(const std::string& strategy, const Words& more = {}) {
    auto running = Start(Words{"train", "--strategy", strategy, "--transport", "tcp", "--ranks",
                               "2", "--epochs", "100000", "--threads", "1", "--set",
                               "trainer.evaluate_every=0", "--set", "trainer.checkpoint_epochs=0",
                               "--set", "strategy.snapshot_s=0.2", "--out", "a"} +
                         more);
    for (const Stopwatch watch; watch.seconds() < kTimeout && meet_.empty() && !running->Over();) {
      const std::string err = running->err();
      const std::string words = "trireme join ";
      const size_t at = err.find(words);
      if (at != err.npos && err.find('\n', at) != err.npos) {
        meet_ = err.substr(at + words.size(), err.find('\n', at) - at - words.size());
      } else {
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      }
    }
    EXPECT_FALSE(meet_.empty()) << running->err();
    return running;
  }

  bool AwaitSamples(Running& running, size_t client) {
    return AwaitClients(running, "a", [&](const std::vector<ClientCounts>& clients) {
      return clients.size() > client && clients[client].samples > 0;
    });
  }

  std::string meet_;
};

TEST_F(JoinTest, ALateClientWorksAndLeaves) {
  auto server = Serve("easgd");
  auto client = Start({"join", meet_, "--threads", "1"});
  EXPECT_TRUE(AwaitSamples(*server, 1)) << server->err() << client->err();
  client->Kill(SIGTERM);
  const Outcome left = client->Wait(kTimeout);
  EXPECT_EQ(left.exit_code, 143) << left.err;
  EXPECT_FALSE(server->Over());
  auto dies = Start({"join", meet_, "--threads", "1"});
  EXPECT_TRUE(AwaitSamples(*server, 2)) << server->err() << dies->err();
  dies->Kill(SIGKILL);
  server->Kill(SIGTERM);
  EXPECT_EQ(server->Wait(kTimeout).exit_code, 143);
}

TEST_F(JoinTest, TheFirstInterruptOfAClientIsAnswered) {
  auto server = Serve("easgd");
  auto client = Start({"join", meet_, "--threads", "1"});
  EXPECT_TRUE(AwaitSamples(*server, 1)) << server->err() << client->err();
  client->Kill(SIGINT);
  const Outcome left = client->Wait(kTimeout);
  EXPECT_EQ(left.exit_code, 130) << left.err;
  EXPECT_NE(
      left.err.find("leaving the run after this step; press Ctrl-C again to stop immediately"),
      std::string::npos)
      << left.err;
  server->Kill(SIGTERM);
  EXPECT_EQ(server->Wait(kTimeout).exit_code, 143);
}

TEST_F(JoinTest, AServerSaysWhereItListensOnceItDoes) {
  const std::string where = fmt::format("0.0.0.0:{}", FreePort());
  auto server = Serve("easgd", {"--set", "transport.listen=" + where});
  EXPECT_NE(server->err().find("listening at " + where), std::string::npos) << server->err();
  EXPECT_NE(server->err().find("only clients of this machine can join"), std::string::npos)
      << server->err();
  const Outcome second = Run({"train", "--strategy", "easgd", "--transport", "tcp", "--ranks", "2",
                              "--set", "transport.listen=" + where, "--out", "b"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_NE(second.err.find("cannot listen on " + where), std::string::npos) << second.err;
  EXPECT_EQ(second.err.find("listening at"), std::string::npos) << second.err;
  server->Kill(SIGTERM);
  EXPECT_EQ(server->Wait(kTimeout).exit_code, 143);
}

// Where only weights leave a client, in rounds and at a free pace.
class OwnSamplesTest : public JoinTest, public testing::WithParamInterface<const char*> {};

TEST_P(OwnSamplesTest, StayWithTheClient) {
  std::string csv = "a,b,c,d,species\n";
  for (int i = 0; i < 60; ++i) {
    const char* names[] = {"setosa", "versicolor", "virginica"};
    csv += fmt::format("{},{},{},{},{}\n", 4 + i % 3, 3, 1 + 2 * (i % 3), i % 3, names[i % 3]);
  }
  Write("own.csv", csv);
  auto server =
      Serve(GetParam(), {"--data", "csv:own.csv", "--model", "mlp:4-8-3", "--batch", "8"});
  Write("mine.csv", csv.substr(0, csv.size() / 2 + csv.substr(csv.size() / 2).find('\n') + 1));
  auto client = Start({"join", meet_, "--threads", "1", "--data", "csv:mine.csv"});
  EXPECT_TRUE(AwaitSamples(*server, 1)) << server->err() << client->err();
  client->Kill(SIGTERM);
  EXPECT_EQ(client->Wait(kTimeout).exit_code, 143);
  server->Kill(SIGTERM);
  EXPECT_EQ(server->Wait(kTimeout).exit_code, 143);
}

INSTANTIATE_TEST_SUITE_P(Strategies, OwnSamplesTest, testing::Values("federated", "async-ps"),
                         [](const auto& strategy) {
                           return strategy.index == 0 ? "InRounds" : "AtAFreePace";
                         });

TEST_F(JoinTest, StrangersAreRefusedAndTheServerGoesOn) {
  auto server = Serve("easgd");
  Write("secret", "guess");
  Refuse({"join", meet_, "--secret-file", "secret"}, 1, {"secret"});
  const Outcome data = Run({"join", meet_, "--data", "synthetic:1x1x4:3:100"});
  EXPECT_EQ(data.exit_code, 1);
  EXPECT_NE(data.err.find("its data differ"), std::string::npos) << data.err;
  const Outcome recipe = Run({"join", meet_, "--set", "optimizer.lr=0.5"});
  const std::string words = "its recipe differs: optimizer.lr is 0.5, at the server 0.02";
  EXPECT_NE(recipe.err.find(words), std::string::npos) << recipe.err;
  const Outcome model = Run({"join", meet_, "--set", "model.name=mlp:4-5-3"});
  EXPECT_NE(model.err.find("its model differs"), std::string::npos) << model.err;
  EXPECT_EQ(Run({"join", "127.0.0.1:1"}).exit_code, 1);
  EXPECT_FALSE(server->Over());
  EXPECT_NE(server->err().find("refused 127.0.0.1:"), std::string::npos) << server->err();
  server->Kill(SIGINT);
  EXPECT_EQ(server->Wait(kTimeout).exit_code, 130);
}

}  // namespace
}  // namespace trireme::whole
