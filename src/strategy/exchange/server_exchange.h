#pragma once
#include <algorithm>
#include <memory>
#include <vector>

#include "flat/host_memory.h"
#include "strategy/exchange/client.h"
#include "strategy/exchange/exchange.h"
#include "strategy/exchange/merge.h"

namespace trireme {

// Meets weights that a server keeps: after some steps, what the worker did since the last meeting
// is merged with them, and counts there by the leases that it was done for.
class ServerExchange : public Exchange {
 public:
  // `period`: steps between meetings; 0: one each epoch. `led`: others work on the same leases, and
  // whoever leads them says when newer weights are taken.
  ServerExchange(std::unique_ptr<Client> client, std::unique_ptr<Merge> merge, int period, bool led)
      : client_(std::move(client)), merge_(std::move(merge)), period_(period), led_(led) {}

  void Begin(Replica& replica) override;
  bool Updates() const override { return merge_->updates(); }
  void Update(Replica& replica, const Gradient& sum) override { merge_->Update(replica, sum); }
  bool OwnsState() const override { return false; }
  void BeforeStep(Replica& replica) override {
    if (!led_) TakeNewer(replica);
  }
  void AfterStep(Replica& replica) override;
  void Stop() override {
    client_->centre().Settle();
    client_->leases().Stop();
  }
  void End(Replica& replica) override { Drain(replica); }
  void Snapshot(Replica& replica, Slice into) override;

  double waited_s() const override { return client_->waited_s(); }
  std::optional<Volume> volume() const override { return client_->volume(); }

  // For the source of work.
  Client& client() { return *client_; }
  bool holds() const { return !open_.empty(); }  // work that the server does not have yet
  void Drain(Replica& replica);                  // meets, and knows that it counts
  void Discard(Replica& replica);  // what it holds is void: begins anew with the server's weights
  void TakeNewer(Replica& replica) {
    if (!overflowed_) merge_->BeforeStep(replica, period_ > 0 ? std::max(1, period_ - since_) : 0);
  }
  // The last step overflowed and counts nowhere: its lease is to be taken again.
  bool overflowed() const { return overflowed_; }
  bool Moved() { return merge_->Moved(); }  // the weights, by the server, since the last call
  bool Forgets() { return std::exchange(forgets_, false); }  // momentum, since the last call

 private:
  void Meet(Replica& replica);
  bool MeetsAfter(int steps) const { return period_ > 0 && steps >= period_; }
  void CountLoss(Replica& replica);
  void ReadScale(Replica& replica);

  const std::unique_ptr<Client> client_;
  const std::unique_ptr<Merge> merge_;
  const int period_;
  const bool led_;
  std::vector<int64_t> open_;  // leases whose work the server does not have yet
  HostBuffer<float> metrics_;  // of a step
  HostBuffer<float> scale_;    // an UpdateScale
  bool overflowed_ = false;
  PushHead head_;             // what the next push says of them
  int since_ = 0;             // steps since the last meeting
  double told_waited_s_ = 0;  // of the client's, in pushes so far
  bool forgets_ = false;
};

// Of a worker that follows another one, which meets the server for both.
class Follower : public Exchange {
 public:
  explicit Follower(bool updates) : updates_(updates) {}
  bool Updates() const override { return updates_; }
  bool OwnsState() const override { return false; }

 private:
  const bool updates_;
};

}  // namespace trireme
