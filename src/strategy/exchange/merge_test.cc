// Every merge, a worker's side and the server's, against a play in double by hand: three workers
// whose steps begin and end in a fixed order.
#include "strategy/exchange/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "flat/cpu/host.h"
#include "strategy/check/merge_play.h"
#include "strategy/exchange/client.h"
#include "strategy/exchange/merge_kinds.h"
#include "strategy/exchange/neighbour_inboxes.h"
#include "strategy/exchange/shared_weights.h"
#include "strategy/server/memory_ledger.h"
#include "strategy/server/rule.h"
#include "transport/memory/box.h"
#include "transport/threads/thread_link.h"

namespace trireme::hand {
namespace {

constexpr double kSoon = 60;  // a busy machine must not make a test fail

// A small letter begins a step of worker a, b or c, the capital ends it; a digit is a worker (1 is
// a) that has no more work and meets the server early. In rounds all end their steps together.
constexpr std::string_view kOrder =
    "aAbBcCabABcCcbaABCaAaAbcCB1bBacAC3cCbaBAaAbBcCabcCBAbaABcCaAacACbB2cabBACaAaA";

// ---- the program's: merges, clients and rules, and a server that does what it is told

// Workers push weights and take the server's from its broadcasts.
bool TakesNews(const MergeKind& kind, const Row& row) { return kind.takes_weights && !row.rounds; }

// A centre in remote memory, as rank 0 leaves it.
class HandMemory {
 public:
  static constexpr int64_t kFence = 5;  // of all workers

  HandMemory() : memory_(box_.Connect()) {
    const Region fences = memory_->Create(kFenceRegion, RegionType::kI64, kWorkers);
    memory_->Put(fences, 0, std::vector<int64_t>(kWorkers, kFence)).Wait();
    centre_ = memory_->Create(kCentreRegion, RegionType::kF32, kFloats);
    memory_->Put(centre_, 0, kModel.initial).Wait();
  }
  std::unique_ptr<Memory> Connect() { return box_.Connect(); }
  std::vector<float> Get() {
    std::vector<float> values(kFloats);
    memory_->Get(centre_, 0, values).Wait();
    return values;
  }

 private:
  MemoryBox box_{MemoryBoxSetup{}};
  const std::unique_ptr<Memory> memory_;
  Region centre_;
};

// Applies what is pushed as it comes, or in rounds. A thread of its own. Its broadcasts come before
// the answer to a fetch, so that a worker can await them.
class HandServer {
 public:
  HandServer(const MergeKind& kind, const Row& row)
      : broadcasts_(TakesNews(kind, row)),
        rounds_(row.rounds),
        queue_(device_.NewQueue()),
        schedule_(row.optimizer, 10, 100, 8),
        centre_(device_, kFloats),
        rule_(kind.rule({.layout = kModel.layout,
                         .device = device_,
                         .optimizer = &row.optimizer,
                         .schedule = &schedule_,
                         .clients = kWorkers,
                         .samples = kUsualSamples,
                         .rounds = row.rounds,
                         .alpha = row.alpha,
                         .outer_momentum = row.outer_momentum})) {
    std::copy(kModel.initial.begin(), kModel.initial.end(), centre_.slice().host().begin());
    for (auto& both : links_) {
      both = std::make_unique<ThreadLink>(kSoon, kSoon);
      both->server().SetWakeEvent(&wake_);
    }
    thread_ = std::jthread([this](const std::stop_token& stop) { Serve(stop); });
  }
  ~HandServer() {
    thread_.request_stop();
    wake_.Notify();
    thread_.join();
    for (auto& both : links_) both->server().SetWakeEvent(nullptr);
  }
  Link& link(int worker) { return links_[size_t(worker)]->client(); }
  // The centre behind so many fetches and pushes, and not one more.
  std::vector<float> Await(int64_t words) {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, After(kSoon), [&] { return words_ >= words; });
    EXPECT_EQ(words_, words);
    const auto now = centre_.slice().host();
    return {now.begin(), now.end()};
  }

 private:
  struct Push {
    int worker;
    Message message;
  };
  void Serve(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      bool heard = false;
      for (int w = 0; w < kWorkers; ++w) {
        Message message;
        while (links_[size_t(w)]->server().Receive(message, After(0)) == Arrival::kMessage) {
          heard = true;
          Handle(w, std::move(message));
        }
      }
      if (!heard) wake_.Wait(After(0.1));
    }
  }
  void Handle(int worker, Message message) {
    std::lock_guard lock(mutex_);
    if (message.kind == kFetch) {
      if (broadcasts_) SendCentre(worker, kNews, {version_, kWorkers});
      SendCentre(worker, kCentre, {version_, kWorkers, message.ints[0]});
    } else if (message.kind == kPush) {
      pushes_.push_back({worker, std::move(message)});
      if (!rounds_ || pushes_.size() == kWorkers) Apply();
    } else if (message.kind == kAsk) {  // where the centre lies in memory
      links_[size_t(worker)]->server().Send(
          {.kind = kGrant, .ints = {0, ++leases_, 0, 1, worker, HandMemory::kFence}});
      return;
    } else {
      return;
    }
    ++words_;
    changed_.notify_all();
  }
  void Apply() {
    std::ranges::sort(pushes_, {}, &Push::worker);
    std::vector<ServerRule::Part> parts;
    for (Push& push : pushes_) {
      std::vector<float>& body = push.message.body;
      parts.push_back({{body.data(), body.size(), &device_}, push.message.ints[PushHead::kInts]});
    }
    rule_->Apply(*queue_, parts, version_++, 1, centre_);
    queue_->Sync();
    if (rounds_) {
      for (const Push& push : pushes_) SendCentre(push.worker, kCentre, {version_, kWorkers, 0});
    }
    pushes_.clear();
  }
  void SendCentre(int worker, int kind, std::vector<int64_t> ints) {
    const auto now = centre_.slice().host();
    links_[size_t(worker)]->server().Send(
        {.kind = kind, .ints = std::move(ints), .body = {now.begin(), now.end()}});
  }

  const bool broadcasts_, rounds_;
  HostDevice device_;
  const std::unique_ptr<Queue> queue_;
  const Schedule schedule_;
  WakeEvent wake_;
  std::array<std::unique_ptr<ThreadLink>, kWorkers> links_;
  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  Buffer centre_;
  const std::unique_ptr<ServerRule> rule_;
  std::vector<Push> pushes_;
  int64_t version_ = 0, words_ = 0, leases_ = 0;
  std::jthread thread_;
};

// What a trainer and an exchange do with a merge.
class Worker {
 public:
  // `memory`: null, or where the centre lies instead of on the server.
  Worker(const MergeKind& kind, const Row& row, HandServer& server, HandMemory* memory, int number)
      : takes_news_(TakesNews(kind, row)),
        period_(row.period),
        number_(number),
        queue_(device_.NewQueue()),
        state_(device_, kFloats),
        summand_(device_, kModel.layout.summand),
        summands_{summand_},
        updater_(row.optimizer, Schedule(row.optimizer, 10, 100, 8), kModel.layout, device_),
        replica_{.device = device_,
                 .queue = *queue_,
                 .state = state_,
                 .summands = summands_,
                 .layout = kModel.layout,
                 .updater = updater_},
        memory_(memory ? memory->Connect() : nullptr),
        client_(memory ? std::make_unique<Client>(
                             server.link(number), LeaseClient::Ahead(),
                             MemoryCentre::Place{*memory_, kWorkers, /*timeout_s=*/kSoon})
                       : std::make_unique<Client>(server.link(number))),
        merge_(kind.make({.centre = client_->centre(),
                          .shared = nullptr,
                          .inboxes = kind.inboxes ? InboxesOf(*client_, number) : nullptr,
                          .push = row.period,
                          .fetch = row.fetch,
                          .rounds = row.rounds,
                          .alpha = row.alpha,
                          .clients = kWorkers})) {
    merge_->Begin(replica_);
  }
  // How early a centre is asked for depends on time; here it is at the last step.
  void Begin() { merge_->BeforeStep(replica_, since_ + 1 >= period_ ? 1 : 0); }
  void End() {
    const auto state = state_.slice().host(), summand = summand_.slice().host();
    for (size_t j = 0; j < kWeights; ++j) {
      summand[j] = float(GradientAt(number_, step_, j, state[j]));
    }
    summand[kWeights] = float(Statistic(number_, step_));
    ++step_;
    if (merge_->updates()) updater_.Apply(*queue_, 0, summand_.slice(), state_);
    const bool meets = ++since_ >= period_;
    merge_->AfterStep(replica_, meets);
    if (meets) Meet();
  }
  void Meet() {
    if (std::exchange(since_, 0) == 0) return;
    if (takes_news_) client_->centre().FetchNow(kFloats);
    int64_t samples = kSamples[size_t(number_)];
    if (memory_) {  // there a lease is one, and nobody asks how large
      Lease lease;
      ASSERT_EQ(client_->leases().Claim(false, lease), LeaseClient::Answer::kLease);
      samples = lease.id;
    }
    merge_->Meet(replica_, {}, {&samples, 1});
  }
  void Settle() { client_->centre().Settle(); }
  std::span<const float> state() const { return state_.slice().host(); }

 private:
  static std::unique_ptr<NeighbourInboxes> InboxesOf(Client& client, int number) {
    return std::make_unique<NeighbourInboxes>(
        dynamic_cast<MemoryCentre&>(client.centre()),
        NeighbourInboxes::Place{.own = number, .clients = kWorkers, .neighbours = kWorkers - 1});
  }

  const bool takes_news_;
  const int period_, number_;
  HostDevice device_;
  const std::unique_ptr<Queue> queue_;
  Buffer state_, summand_;
  const std::array<Slice, 1> summands_;
  Updater updater_;
  Replica replica_;
  const std::unique_ptr<Memory> memory_;
  const std::unique_ptr<Client> client_;
  const std::unique_ptr<Merge> merge_;
  int step_ = 0, since_ = 0;
};

// ---- both

class Merges : public testing::TestWithParam<Row> {
 protected:
  Merges() : kind_(FindMerge(GetParam().merge)), server_(kind_, GetParam()), play_(GetParam()) {
    if (GetParam().memory) memory_.emplace();
    for (int w = 0; w < kWorkers; ++w) {
      workers_[size_t(w)] =
          std::make_unique<Worker>(kind_, GetParam(), server_, memory_ ? &*memory_ : nullptr, w);
    }
  }
  std::vector<float> CentreNow() {
    if (!memory_) return server_.Await(play_.words);
    for (auto& worker : workers_) worker->Settle();
    return memory_->Get();
  }
  void Compare(const std::string& where) {
    const std::vector<float> centre = CentreNow();
    ExpectNear(centre, play_.centre, where + ", the centre");
    for (size_t w = 0; w < kWorkers; ++w) {
      ExpectNear(workers_[w]->state(), play_.players[w].state,
                 where + ", worker " + std::to_string(w));
    }
  }
  static void ExpectNear(std::span<const float> real, const Values& played,
                         const std::string& what) {
    for (size_t i = 0; i < kFloats; ++i) ASSERT_NEAR(real[i], played[i], 5e-5) << what << " " << i;
  }

  const MergeKind& kind_;
  HandServer server_;
  std::optional<HandMemory> memory_;
  std::array<std::unique_ptr<Worker>, kWorkers> workers_;
  Play play_;
};

TEST_P(Merges, DoWhatTheirFormulaSays) {
  Compare("at the start");
  for (size_t at = 0; at < kOrder.size() && !HasFatalFailure(); ++at) {
    const char turn = kOrder[at];
    const int worker = turn <= '9' ? turn - '1' : (turn | 0x20) - 'a';
    Worker& real = *workers_[size_t(worker)];
    if (GetParam().rounds) {
      if (at % 4 != 0) continue;
      std::vector<std::jthread> all;  // each waits for the others
      for (auto& w : workers_) {
        all.emplace_back([&w] {
          w->Begin();
          w->End();
        });
      }
      all.clear();
      for (int w = 0; w < kWorkers; ++w) play_.End(w);
      play_.Round();
    } else if (turn <= '9') {
      real.Meet();
      play_.Meet(worker);
    } else if (turn >= 'a') {
      real.Begin();
      play_.Begin(worker);
    } else {
      real.End();
      play_.End(worker);
    }
    Compare("turn " + std::to_string(at) + " (" + turn + ")");
  }
  EXPECT_EQ(play_.mixed > 0, kind_.inboxes);
}

const OptimizerOptions kPlain{.lr = 0.1, .momentum = 0};
const OptimizerOptions kMomentum{.lr = 0.05, .momentum = 0.8};
const OptimizerOptions kNesterov{.lr = 0.05, .momentum = 0.8, .nesterov = true};
const OptimizerOptions kAdagrad{.name = "adagrad", .lr = 0.1};

INSTANTIATE_TEST_SUITE_P(Rows, Merges,
                         testing::Values(Row{.name = "gradient",
                                             .merge = "gradient",
                                             .formula = Formula::kGradients,
                                             .optimizer = kPlain},
                                         Row{.name = "gradient_momentum",
                                             .merge = "gradient",
                                             .formula = Formula::kGradients,
                                             .optimizer = kMomentum},
                                         Row{.name = "downpour",
                                             .merge = "gradient",
                                             .formula = Formula::kGradients,
                                             .optimizer = kAdagrad,
                                             .period = 2,
                                             .fetch = 2},
                                         Row{.name = "downpour_apart",
                                             .merge = "gradient",
                                             .formula = Formula::kGradients,
                                             .optimizer = kPlain,
                                             .period = 3,
                                             .fetch = 2},
                                         Row{.name = "downpour_old",
                                             .merge = "gradient",
                                             .formula = Formula::kGradients,
                                             .optimizer = kPlain,
                                             .fetch = 3},
                                         Row{.name = "halve",
                                             .merge = "halve",
                                             .formula = Formula::kHalve,
                                             .optimizer = kMomentum,
                                             .period = 2},
                                         Row{.name = "average",
                                             .merge = "average",
                                             .formula = Formula::kAverage,
                                             .optimizer = kPlain},
                                         Row{.name = "average_alpha",
                                             .merge = "average",
                                             .formula = Formula::kAverage,
                                             .optimizer = kMomentum,
                                             .period = 3,
                                             .alpha = 0.4f},
                                         Row{.name = "elastic",
                                             .merge = "elastic",
                                             .formula = Formula::kPull,
                                             .optimizer = kPlain},
                                         Row{.name = "elastic_momentum",
                                             .merge = "elastic",
                                             .formula = Formula::kPull,
                                             .optimizer = kMomentum,
                                             .period = 2,
                                             .alpha = 0.3f},
                                         Row{.name = "elastic_nesterov",
                                             .merge = "elastic",
                                             .formula = Formula::kPull,
                                             .optimizer = kNesterov,
                                             .period = 2},
                                         Row{.name = "elastic_memory",
                                             .merge = "elastic",
                                             .formula = Formula::kPull,
                                             .optimizer = kMomentum,
                                             .memory = true},
                                         Row{.name = "elastic_memory_period",
                                             .merge = "elastic",
                                             .formula = Formula::kPull,
                                             .optimizer = kNesterov,
                                             .period = 2,
                                             .alpha = 0.3f,
                                             .memory = true},
                                         Row{.name = "gossip",
                                             .merge = "gossip",
                                             .formula = Formula::kGossip,
                                             .optimizer = kMomentum,
                                             .period = 2,
                                             .memory = true},
                                         Row{.name = "neighbours",
                                             .merge = "neighbours",
                                             .formula = Formula::kNeighbours,
                                             .optimizer = kMomentum,
                                             .memory = true},
                                         Row{.name = "neighbours_period",
                                             .merge = "neighbours",
                                             .formula = Formula::kNeighbours,
                                             .optimizer = kPlain,
                                             .period = 3,
                                             .alpha = 0.2f,
                                             .memory = true},
                                         Row{.name = "moves",
                                             .merge = "moves",
                                             .formula = Formula::kMoves,
                                             .optimizer = kMomentum,
                                             .memory = true},
                                         Row{.name = "moves_period",
                                             .merge = "moves",
                                             .formula = Formula::kMoves,
                                             .optimizer = kAdagrad,
                                             .period = 3,
                                             .memory = true},
                                         Row{.name = "federated",
                                             .merge = "average",
                                             .formula = Formula::kAverage,
                                             .optimizer = kMomentum,
                                             .period = 2,
                                             .rounds = true},
                                         Row{.name = "federated_momentum",
                                             .merge = "average",
                                             .formula = Formula::kAverage,
                                             .optimizer = kPlain,
                                             .rounds = true,
                                             .outer_momentum = 0.9f}),
                         [](const auto& test) { return std::string(test.param.name); });

// A merge with a server that is new here needs a row above.
TEST(MergeOracle, KnowsEveryMerge) {
  std::vector<std::string> with_server;
  for (const MergeKind& kind : MergeKinds()) {
    if (kind.make) with_server.push_back(kind.name);
  }
  EXPECT_EQ(with_server, (std::vector<std::string>{"gradient", "halve", "average", "elastic",
                                                   "gossip", "neighbours", "moves"}));
}

// Gives weights when the test says so.
class HeldCentre : public Centre {
 public:
  void Prefetch() override { ++asked; }
  Snapshot Fetch(size_t, bool) override { return Snapshot{.version = 1, .state = values}; }
  Snapshot FetchNow(size_t) override { return Snapshot{.version = 9, .state = values}; }
  std::optional<Snapshot> Prefetched(size_t) override { return std::exchange(held, {}); }
  std::optional<Snapshot> News(size_t) override { return {}; }
  void Push(Queue& queue, Slice change, const PushHead& head, std::span<const int64_t>,
            std::vector<float>) override {
    queue.Sync();
    pushed.assign(change.host().begin(), change.host().end());
    version = head.version;
  }
  std::optional<Snapshot> Answered(size_t) override { return {}; }
  bool holds_void() const override { return false; }
  double fetch_s() const override { return takes_s; }

  double takes_s = 0;
  std::vector<float> values = std::vector<float>(kFloats, 10), pushed;
  std::optional<Snapshot> held;
  int asked = 0;
  int64_t version = 0;
};

// What such a worker has.
struct LoneReplica {
  HostDevice device;
  const std::unique_ptr<Queue> queue = device.NewQueue();
  Buffer state{device, kFloats};
  const OptimizerOptions optimizer{.lr = 1, .momentum = 0};
  Updater updater{optimizer, Schedule(optimizer, 10, 100, 8), kModel.layout, device};
  Replica replica{.device = device,
                  .queue = *queue,
                  .state = state,
                  .summands = {},
                  .layout = kModel.layout,
                  .updater = updater};
};

// The centre that a worker asked for may come late: what it has done meanwhile is kept, and is
// pushed once.
TEST(MergeMoves, GoesOnFromWeightsThatComeLateAndFromItsOwnMoves) {
  HeldCentre centre;
  LoneReplica own;
  const auto merge = FindMerge("moves").make({.centre = centre});
  Replica& replica = own.replica;
  const auto all_are = [](std::span<const float> values, float value) {
    return std::ranges::all_of(values, [&](float v) { return v == value; });
  };
  const auto step = [&](float by) {  // what an optimizer did
    merge->BeforeStep(replica, 1);
    for (float& value : own.state.slice().host()) value += by;
    merge->AfterStep(replica, true);
  };
  const auto weights = [&] { return own.state.slice().host(); };
  merge->Begin(replica);
  EXPECT_TRUE(all_are(weights(), 10));
  step(3);
  merge->Meet(replica, {}, {});
  EXPECT_TRUE(all_are(centre.pushed, 3));
  EXPECT_EQ(centre.version, 1);
  EXPECT_EQ(centre.asked, 1);
  step(5);  // nothing has come: it goes on with its own
  EXPECT_TRUE(all_are(weights(), 18));
  centre.held = {.version = 4, .state = std::vector<float>(kFloats, 100)};
  merge->Meet(replica, {}, {});
  EXPECT_TRUE(all_are(centre.pushed, 5));  // the 3 is in the 100
  EXPECT_EQ(centre.version, 1);            // which this move was not made from
  EXPECT_TRUE(all_are(weights(), 105));
  centre.held = {.version = 6, .state = std::vector<float>(kFloats, 200)};
  step(7);
  EXPECT_TRUE(all_are(weights(), 207));
  merge->Meet(replica, {}, {});
  EXPECT_TRUE(all_are(centre.pushed, 7));
  EXPECT_EQ(centre.version, 6);
  step(11);
  merge->Reload(replica);  // what it has done does not count
  EXPECT_TRUE(all_are(weights(), 10));
  step(1);
  merge->Meet(replica, {}, {});
  EXPECT_TRUE(all_are(centre.pushed, 1));
  EXPECT_EQ(centre.version, 9);
}

TEST(MergeElastic, AsksForTheCentreAsManyStepsBeforeAMeetingAsItTakesToCome) {
  HeldCentre centre;
  LoneReplica own;
  const auto merge = FindMerge("elastic").make({.centre = centre});
  Replica& replica = own.replica;
  merge->Begin(replica);
  const auto asked = [&](int left) {
    merge->BeforeStep(replica, left);
    return std::exchange(centre.asked, 0);
  };
  EXPECT_EQ(asked(3), 0);  // nobody knows yet what a step takes
  EXPECT_EQ(asked(2), 0);
  EXPECT_EQ(asked(1), 1);
  merge->Meet(replica, {}, {});
  centre.takes_s = 1e9;
  EXPECT_EQ(asked(3), 1);
  EXPECT_EQ(asked(2), 0);
  EXPECT_EQ(asked(1), 0);
  merge->Meet(replica, {}, {});
  EXPECT_EQ(asked(0), 0);  // nobody knows when the meeting is
  centre.takes_s = 0;
  EXPECT_EQ(asked(2), 0);
  EXPECT_EQ(asked(1), 1);
}

}  // namespace
}  // namespace trireme::hand
