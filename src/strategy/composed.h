#pragma once
#include <memory>
#include <vector>

#include "strategy/centre_group.h"
#include "strategy/client.h"
#include "strategy/handout.h"
#include "strategy/inner.h"
#include "strategy/lease_team.h"
#include "strategy/merge.h"

namespace trireme {

// The four choices of a strategy.
struct Choices {
  Plan plan;
  int worker = 0, workers = 1;  // a server that takes part in steps is worker -1
  Members members;              // with an anchor: those that advance together with this one
  bool records = false;         // this rank writes the run
  std::unique_ptr<Inner> inner;
  std::unique_ptr<Client> centre;    // null: none
  std::unique_ptr<Handout> handout;  // a free pace without a centre; neither: all advance in step
  std::unique_ptr<GroupCentre> anchor;  // in step: each advances alone, now and then all meet
  std::unique_ptr<Merge> merge;         // with a centre
  int period = 1;  // pace: local steps between meetings with the centre; 0: one each epoch
  std::unique_ptr<LeaseTeam> team;  // works on the leases together; only its leader has a centre
  bool updates = true;              // of the others in a team: they move their weights themselves
  int64_t own_samples = 0;          // not 0: of data that are not the server's; leases say how many
  bool clocked = false;             // leases are shards of steps, not steps of this worker alone
};

// Any strategy: a step of the inner choice, an update, and now and then a meeting with the centre.
class Composed : public Strategy {
 public:
  explicit Composed(Choices choices);

  Slice Place(Role role, size_t floats, Device& device) override;
  bool SharesState() const override { return choices_.inner->SharesState(); }
  int Summands() const override { return choices_.inner->Summands(); }
  bool OnlyUpdates() const override { return OwnsState() && choices_.inner->OnlyUpdates(); }
  bool InStep() const override { return OwnsState() && !choices_.handout; }
  bool Records() const override { return choices_.records; }

  bool Agreed() const override { return !choices_.anchor || choices_.anchor->agreed(); }

  void Begin(Replica& replica) override;
  Turn Next(int64_t step, Work& work) override;
  void Stop() override;
  void BeforeStep(Replica& replica) override;
  void BucketReady(Replica& replica, const Bucket& bucket, const Event& event) override;
  Event AfterStep(Replica& replica) override;
  void Rehearse(Replica& replica) override;
  void End(Replica& replica) override;

  void Snapshot(Replica& replica, Slice into) override;
  void Save(Replica& replica, StateWriter& writer) override;
  void Load(Replica& replica, const StateReader& reader) override;
  Traffic traffic() const override;
  std::vector<ClientNumbers> workers() const override;

 private:
  bool OwnsState() const { return !choices_.centre && !choices_.team; }  // nobody else keeps it
  Turn NextLease(Work& work);
  Turn Follow(Work& work);
  Turn Lead(Turn turn, Work& work);
  bool Updates() const { return choices_.merge ? choices_.merge->updates() : choices_.updates; }
  void WorkOn(const Lease& lease, Work& work);
  void TakeOwn(Work& work);
  void CountLoss(Replica& replica);
  bool MeetsAfter(int steps) const { return choices_.period > 0 && steps >= choices_.period; }
  void AnnounceRest(Replica& replica);
  void Update(Replica& replica);
  void Meet();
  void CountForAnchor(Replica& replica);
  void TakeImage();

  std::vector<Buffer> memory_;
  Choices choices_;
  Replica* replica_ = nullptr;  // since Begin
  std::vector<int64_t> open_;   // leases whose work the centre does not have yet
  int since_ = 0;               // steps since the last meeting
  size_t announced_ = 0;        // buckets of this step
  int64_t own_epoch_ = 0, own_position_ = 0;
  bool forgets_ = false;  // the team's momentum
  PushHead head_;         // what the next push says of open_
  unsigned updates_ = 0;
  bool update_is_short_ = false;
  Buffer image_;             // of a shared state, for snapshots
  int64_t image_taken_ = 0;  // positions that are in it
  std::vector<ClientNumbers> image_workers_;
  bool image_is_new_ = false;
  double update_s_ = 0;
};

}  // namespace trireme
