// A server that dies and begins anew from its snapshot: weights, the optimizer's memory, the count
// of updates, versions and leases return together. One client, whose every update is a function of
// the centre and the lease, makes a run a function of its start; so what was lost and done again
// must end at the bits of a run that nobody disturbed.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <thread>

#include "strategy/check/toy_engine.h"
#include "strategy/server/parameter_server.h"
#include "strategy/server/protocol.h"
#include "transport/threads/thread_link.h"

namespace trireme {
namespace {

constexpr int64_t kSamples = 40, kLease = 5, kEpochs = 4;

// A client that has asked, and whose server was replaced meanwhile, asks again.
struct Scripted {
  Link& link;
  std::vector<int64_t>& ids;  // of the leases it was given

  // The next answer of that kind; nothing: the server is another one.
  std::optional<Message> Await(int kind) {
    for (;;) {
      Message message;
      const Arrival arrival = link.Receive(message, After(60));
      if (arrival == Arrival::kRenewed) {
        link.Send({.kind = kAnew});  // what it sent before may have reached the new one
        return {};
      }
      if (arrival == Arrival::kNothing) {
        ADD_FAILURE() << "no answer";
        return Message{.kind = kEnd};
      }
      if (message.kind == kind || message.kind == kEnd) return message;
    }
  }

  void Run() {
    for (;;) {
      link.Send({.kind = kAsk, .ints = {0}});
      const auto grant = Await(kGrant);
      if (!grant) continue;
      if (grant->kind == kEnd) break;
      ids.push_back(grant->ints.at(1));
      link.Send({.kind = kFetch});
      const auto centre = Await(kCentre);
      if (!centre) continue;
      Message push{.kind = kPush, .ints = {centre->ints.at(0), 0, 0, 0, 0, grant->ints.at(1)}};
      const double place = double(grant->ints.at(0) * kSamples + grant->ints.at(2));
      for (size_t j = 0; j < centre->body.size(); ++j) {
        push.body.push_back(centre->body[j] - float(std::sin(place + double(j))));
      }
      link.Send(std::move(push));
    }
    link.Send({.kind = kBye});
  }
};

struct Crash {};

// Saves itself after `save` updates and dies after `die` of them.
struct Mortal : ServerKeeper {
  Mortal(int64_t save, int64_t die) : save_after(save), die_after(die) {}
  void EpochEnded(const Server&) override {}
  void Look(const Server& server) override {
    const int64_t updates = server.progress().updates;
    if (updates == save_after && memory.state.empty()) {
      server.Save(memory);
      memory.state.assign(server.centre().begin(), server.centre().end());
    }
    if (updates >= die_after) throw Crash();
  }
  bool Stop() override { return false; }
  const int64_t save_after, die_after;
  toy::Memory memory;
};

class CentreRestart : public testing::TestWithParam<OptimizerOptions> {
 protected:
  ParameterServer::Setup SetupOf(ThreadLink& wire) const {
    return {.clients = {&wire.server()},
            .plan = plan,
            .positions = PositionsOf(plan),
            .lease = kLease,
            .rule =
                [this](Device& device) {
                  return MakeUpdateRule(GetParam(), schedule, model.layout, device);
                },
            .life = 7};  // of both lives, as if chance or a clock repeated itself
  }
  // The centre at the end, and the optimizer's memory; -1: nobody dies.
  toy::Memory Train(int64_t save, int64_t die) {
    ThreadLink wire(60, 60);
    Mortal keeper(save, die < 0 ? 1 << 30 : die);
    auto server = std::make_unique<ParameterServer>(SetupOf(wire), model.initial);
    std::vector<int64_t> ids;
    std::jthread client([&] { Scripted{wire.client(), ids}.Run(); });
    if (die >= 0) {
      EXPECT_THROW(server->Run(&keeper), Crash);
      server = std::make_unique<ParameterServer>(SetupOf(wire), keeper.memory.state);
      server->Load(keeper.memory);
      EXPECT_EQ(server->version(), save);
      EXPECT_EQ(server->progress().positions, save * kLease);
      wire.Renew();
    }
    server->Run(nullptr);
    client.join();
    EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), ids.size()) << "an id was given out twice";
    EXPECT_EQ(server->progress().positions, PositionsOf(plan));
    EXPECT_EQ(server->version(), PositionsOf(plan) / kLease);
    EXPECT_EQ(server->clients()[0].pushes, PositionsOf(plan) / kLease);
    toy::Memory end;
    server->Save(end);
    end.state.assign(server->centre().begin(), server->centre().end());
    return end;
  }

  const Plan plan{.samples = kSamples, .batch = 10, .shards = 1, .steps = kEpochs * kSamples / 10};
  const toy::Model model{100};
  const Schedule schedule{GetParam(), plan.steps_per_epoch(), plan.steps, plan.batch};
};

TEST_P(CentreRestart, EndsAtTheBitsOfARunThatNobodyDisturbed) {
  const toy::Memory whole = Train(-1, -1);
  const auto floats = std::array{int64_t(model.layout.weights)};
  // In the middle of an epoch, at its end, one update after the snapshot and many.
  for (const auto& [save, die] : {std::pair{5, 6}, {8, 9}, {11, 20}, {15, 17}}) {
    const toy::Memory parts = Train(save, die);
    EXPECT_EQ(parts.state, whole.state) << save;
    EXPECT_EQ(parts.Int("optimizer.updates"), whole.Int("optimizer.updates"));
    for (const std::string& name : whole.TensorNames()) {
      std::vector<float> a(model.layout.weights), b(a);
      whole.Tensor(name, floats, a);
      parts.Tensor(name, floats, b);
      EXPECT_EQ(a, b) << name << " " << save;
    }
  }
}

// Snapshots of older versions do not say which life wrote them.
TEST_P(CentreRestart, BeginsWithASnapshotThatKnowsNoLife) {
  ThreadLink wire(60, 60);
  const ParameterServer server(SetupOf(wire), model.initial);
  struct Old : toy::Memory {
    bool Has(std::string_view name) const override {
      return name != "centre.life" && toy::Memory::Has(name);
    }
  } old;
  server.Save(old);
  ParameterServer next(SetupOf(wire), model.initial);
  EXPECT_NO_THROW(next.Load(old));
}

INSTANTIATE_TEST_SUITE_P(
    All, CentreRestart,
    testing::Values(OptimizerOptions{.lr = 0.05, .momentum = 0.9, .schedule = "cosine"},
                    OptimizerOptions{.name = "adam", .lr = 0.05},
                    OptimizerOptions{.name = "adagrad", .lr = 0.05}),
    [](const auto& of) { return of.param.name; });

}  // namespace
}  // namespace trireme
