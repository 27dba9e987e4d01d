#pragma once
#include <memory>

#include "strategy/exchange/server_exchange.h"
#include "strategy/work/lease_group.h"
#include "strategy/work/work_source.h"

namespace trireme {

// Work by leases: of a server, or taken by this worker (LeaseSource).
class Leases : public WorkSource {
 public:
  struct Cut {
    bool shards = false;      // leases are shards of steps, not steps of this worker alone
    int64_t own_samples = 0;  // not 0: of data that are not the server's; leases say how many
  };
  Leases(const Plan& plan, Cut cut, ServerExchange& exchange)
      : plan_(plan), cut_(cut), exchange_(exchange) {}
  Turn Next(Replica* replica, int64_t step, Work& work) override;

 private:
  void WorkOn(const Lease& lease, Work& work);
  void TakeOwn(Work& work);

  const Plan plan_;
  const Cut cut_;
  ServerExchange& exchange_;
  int64_t own_epoch_ = 0, own_position_ = 0;
  Work last_;  // to do it again, where the loss is scaled
};

// Of workers that compute each lease together: the leader takes it, all have a part.
class GroupedLeases : public WorkSource {
 public:
  // `leases` and `exchange` are the leader's, else null.
  GroupedLeases(Group& group, std::unique_ptr<Leases> leases, ServerExchange* exchange)
      : group_(group), leases_(std::move(leases)), exchange_(exchange) {}
  Turn Next(Replica* replica, int64_t step, Work& work) override;

 private:
  LeaseGroup group_;
  const std::unique_ptr<Leases> leases_;
  ServerExchange* const exchange_;
};

}  // namespace trireme
