#pragma once
#include <map>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "strategy/server/partition.h"
#include "transport/link.h"

namespace trireme {

// What the first of several servers knows of the others and says to them. It alone orders updates:
// when the others have told that they hold their partitions of a push, it says that the push
// counts, and they apply it in the order in which they hear that. So every partition sees the same
// updates in the same order, and a word in that stream is a moment of the whole centre. One thread:
// the first server's.
class PartitionSequencer {
 public:
  // `others`: links to the servers after the first, in order.
  PartitionSequencer(const Layout& layout, std::vector<Link*> others);
  ~PartitionSequencer();  // tells them that the run is over, unless it goes on with another life
  PartitionSequencer(const PartitionSequencer&) = delete;
  PartitionSequencer& operator=(const PartitionSequencer&) = delete;

  Range own() const { return partitions_[0].range; }
  void SetWakeEvent(WakeEvent* wake);

  // What the run begins with, and later what was gathered last.
  void Begin(std::span<const float> state) { whole_.assign(state.begin(), state.end()); }
  std::span<const float> whole() const { return whole_; }
  const StateImage& memory() const { return memory_; }
  // All that rules keep. `own` is what the first's rule keeps; afterwards its part of what is read.
  void Load(const StateReader& reader, StateImage& own);
  // To each its partition of that. `life`: of the first server, which begins the ids of its leases.
  void SendOut(int64_t life);
  // A moment of the whole centre. Blocks until all have answered.
  void Gather(std::span<const float> own_state, StateImage own);

  // Hears the others; false: nothing was there. `owned`: the lease is open and the client's.
  using Owned = FunctionRef<bool(int64_t lease, int client)>;
  bool Hear(Owned owned);
  int signal() const { return signal_; }  // that one of the others got; 0: none did
  enum class Standing { kIncomplete, kComplete, kBad };
  Standing Of(int64_t lease) const;  // of the partitions of a push
  void Apply(int64_t lease, int64_t samples, int64_t step, float share);
  void Sweep(FunctionRef<bool(int64_t lease)> open);  // pushes of leases that are not are forgotten

 private:
  struct Partition {
    Range range;
    size_t weights = 0;
    Link* link = nullptr;  // of the others
    bool gone = false;
    Deadline since;  // when it went
  };
  struct Mark {
    int client = 0;
    std::set<int> servers;  // that hold their partitions: one may tell it twice
    bool bad = false;
  };
  StateImage PartOf(size_t begin, size_t weights) const;  // of what rules keep
  void Append(StateImage& part);                          // to what rules keep
  void Note(int server, const Message& message, Owned owned);
  void Forget(int64_t lease, int client);
  void Tell(const Message& message);
  void Miss(Partition& partition, Arrival arrival);
  int NumberOf(const Partition& partition) const { return int(&partition - partitions_.data()); }

  std::vector<Partition> partitions_;  // by server; the first is this one
  std::map<int64_t, Mark> marks_;      // by the first lease of a push
  std::vector<float> whole_;
  StateImage memory_;
  bool has_memory_ = false;
  bool outdated_ = false;
  int signal_ = 0;
  std::vector<std::pair<int, Message>> early_;  // by server: came while it gathered
};

}  // namespace trireme
