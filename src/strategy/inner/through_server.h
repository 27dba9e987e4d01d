#pragma once
#include <memory>
#include <vector>

#include "strategy/inner/overlap.h"
#include "strategy/inner/state_broadcast.h"
#include "strategy/inner/sum_route.h"
#include "transport/group.h"

namespace trireme {

// A server (rank 0) that does not train holds the weights: the workers' summands are added up on
// their way to it, it updates, and its new state comes back to all (Go + MPI_Send/Recv).
// Traffic per step along the chain: each worker sends one summand and receives at most one, and
// gets the state once by a broadcast; the server receives a summand. In the star the server
// receives every worker's summands and sends the state to each.
class InnerThroughServer : public Inner {
 public:
  // What travels to the server. Differences: each worker updates a copy of the weights by its own
  // gradient and sends how far they moved; the server adds up the moves. That is the same update
  // to rounding, as long as the update is linear in the gradient: SGD without momentum, decay and
  // clipping.
  enum class Sends { kGradients, kDifferences };
  // strategy.route: from worker to worker, the server at the end; or each straight to the server.
  // Both add in the order of ranks and shards: equal bits.
  enum class Route { kChain, kStar };
  struct Ways {
    Sends sends = Sends::kGradients;
    Route route = Route::kChain;
    Overlap overlap;
  };

  // `shards` of each rank; none of the server. `summands` of this one: 1, or one per own shard.
  InnerThroughServer(Group& group, const std::vector<int>& shards, bool deterministic, int summands,
                     const Ways& ways);
  ~InnerThroughServer() override;

  int Summands() const override;
  void Begin(Replica& replica) override;
  void SetShards(std::span<const int> shards) override;
  void BeforeStep(Replica& replica) override;
  bool Listens() const override {
    return ways_.overlap.reduce && ways_.sends != Sends::kDifferences;
  }
  void BucketReady(Replica& replica, const Bucket& bucket, const Event& event) override;
  void Agree(Replica& replica, FunctionRef<void()> update) override;
  bool StateArrives() const override { return broadcast_ != nullptr; }
  Event AwaitBucket(Replica& replica, const Bucket& bucket) override;
  void AwaitState(Replica& replica) override;
  double waited_s() const override { return waited_.seconds() + sharing_.seconds(); }
  double busy_s() const override {
    return sum_->busy_s() + sharing_.seconds() + (broadcast_ ? broadcast_->busy_s() : 0);
  }
  Volume volume() const override { return group_.volume(); }

 private:
  bool is_server() const { return group_.rank() == kServer; }
  static constexpr int kServer = 0;
  std::vector<int> SummandsSent(std::span<const int> shards) const;
  void MakeDifference(Replica& replica);
  void ShareState(Replica& replica);
  void SendFromServer(std::span<std::byte> bytes);

  Group& group_;
  const Ways ways_;
  const bool deterministic_;
  const int summands_;
  std::unique_ptr<Group> order_;  // kChain: the workers, then the server
  Staging staging_;               // of the new state on its way, without broadcast_
  HostBuffer<float> metrics_;     // of the step
  HostBuffer<float> scale_;       // of the server's updater
  Buffer moved_;                  // kDifferences, at a worker: its own updated state
  WorkTimes waited_, sharing_;    // sharing: the state's way back
  std::vector<Ticket> leaving_;   // kStar, at the server
  std::unique_ptr<SumRoute> sum_;
  std::unique_ptr<StateBroadcast> broadcast_;  // null: the state comes back before the next step
};

}  // namespace trireme
