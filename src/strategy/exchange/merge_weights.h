#pragma once
#include "strategy/exchange/merge.h"
#include "strategy/exchange/server_client.h"

namespace trireme {

// Weights go to the centre, which mixes them with its own and answers with the result: "halve" and
// "average", on arrival or in rounds. Weights are replaced only then: in between, work would vanish
// that is leased and not pushed.
class MergeWeights : public Merge {
 public:
  // `forgets`: local momentum ends at a meeting, as in rounds of local SGD.
  MergeWeights(ServerClient& centre, bool forgets) : client_(centre), forgets_(forgets) {}
  void Begin(Replica& replica) override;
  void Meet(Replica& replica, PushHead head, std::span<const int64_t> leases) override;
  void Reload(Replica& replica) override;

 private:
  ServerClient& client_;
  const bool forgets_;
  int64_t version_ = 0;
};

}  // namespace trireme
