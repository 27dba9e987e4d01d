#pragma once
#include <memory>
#include <vector>

#include "strategy/inner/sum_chain.h"

namespace trireme {

// A server (rank 0) that does not train holds the weights: the workers' summands are added up along
// a chain whose end it is, it updates, and its new state comes back to all (Go + MPI_Send/Recv).
// Traffic per step: each worker sends one summand and receives at most one, and gets the state once
// by a broadcast; the server receives a summand.
class InnerThroughServer : public Inner {
 public:
  // What travels to the server. Differences: each worker updates a copy of the weights by its own
  // gradient and sends how far they moved; the server adds up the moves. That is the same update
  // to rounding, as long as the update is linear in the gradient: SGD without momentum, decay and
  // clipping.
  enum class Sends { kGradients, kDifferences };

  // `shards[r]` summands belong to rank r; none to the server.
  InnerThroughServer(Group& group, const std::vector<int>& shards, bool deterministic, Sends sends);
  ~InnerThroughServer() override;

  int Summands() const override;
  void Begin(Replica& replica) override;
  void BeforeStep(Replica& replica) override;
  void BucketReady(Replica& replica, const Bucket& bucket, const Event& event) override;
  void Agree(Replica& replica, FunctionRef<void()> update) override;
  double waited_s() const override { return waited_s_; }
  double busy_s() const override { return chain_->busy_s() + shared_s_; }
  Volume volume() const override { return group_.volume(); }

 private:
  bool is_server() const { return group_.rank() == kServer; }
  static constexpr int kServer = 0;
  void MakeDifference(Replica& replica);
  void ShareState(Replica& replica);

  Group& group_;
  const Sends sends_;
  const int summands_;
  std::unique_ptr<Group> order_;  // the workers, then the server
  std::vector<float> host_;       // the new state and the step's metrics, on their way
  Buffer moved_;                  // kDifferences, at a worker: its own updated state
  double waited_s_ = 0;
  double shared_s_ = 0;  // of it: the state's way back
  std::unique_ptr<SumChain> chain_;
};

}  // namespace trireme
