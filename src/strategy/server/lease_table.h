#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace trireme {

// Positions of one epoch that a client has been given. They count when its push names the id.
struct Lease {
  int64_t id = 0;
  int64_t epoch = 0;
  int64_t begin = 0, end = 0;  // positions of the epoch
  int client = 0;
  bool operator==(const Lease&) const = default;
};

constexpr int kNobody = -1;  // owns a lease that is held

// When positions of the next epoch may be taken.
enum class EpochBorder {
  kBarrier,  // when all of the epoch before count
  kOpen,     // when all of the epoch before are taken: nobody waits. An epoch ends when as many
             // positions count as it and those before have, whichever they are
};

// Who works on which positions of the run, and which are done. Knows only positions: no weights,
// no transport. Ids never repeat; after a restart they continue at a number from which the owner
// knows that none was given out. One thread.
class LeaseTable {
 public:
  // Where a lease ends that begins at a position of the epoch.
  using Cut = std::function<int64_t(int64_t begin)>;
  struct Run {
    int64_t samples = 0;  // of an epoch
    int64_t total = 0;    // positions
    int64_t size = 1;     // of a lease; the last of an epoch may be shorter
    Cut cut = {};         // if given, instead of the size
    EpochBorder border = EpochBorder::kBarrier;
  };
  LeaseTable(Run run, int64_t first_id);

  std::optional<Lease> Take(int client);  // nothing: all that is open is taken
  // The epoch and position where the lease begins that Take would give.
  struct Place {
    int64_t epoch, position;
  };
  std::optional<Place> next() const;
  bool Owns(int64_t id, int client) const;
  bool Open(int64_t id) const { return open_.contains(id); }
  const Lease& Get(int64_t id) const;  // an open one
  const Lease& Close(int64_t id);      // its update is applied; valid until the next call
  int Drop(int client);                // its open leases are free again; how many there were
  // Its update is here, but waits for others before it is applied: the lease stays open, and nobody
  // owns it, so it is not dropped.
  void Hold(int64_t id);
  // Only when epoch_over().
  void NextEpoch();

  int64_t next_id() const { return next_id_; }  // of the lease that Take would give
  int64_t epoch() const { return epoch_; }
  bool epoch_over() const;  // behind a barrier every position of it counts
  bool last_epoch() const { return (epoch_ + 1) * run_.samples >= run_.total; }
  bool finished() const { return closed_positions_ >= run_.total; }
  // Not cut short by the run's end.
  bool epoch_complete() const { return (epoch_ + 1) * run_.samples <= run_.total; }
  int64_t untaken() const;  // positions that wait for a client
  int64_t open() const { return int64_t(open_.size()); }
  int64_t closed_positions() const { return closed_positions_; }  // of the whole run

  // Open leases are saved as free ones: their updates are not in the snapshot.
  std::vector<int64_t> Save() const;
  // What Save wrote, by a run of the same samples; the total may be larger, the border another one.
  // Ids continue at `next_id`. Throws Error for numbers that cannot be a table.
  void Load(std::span<const int64_t> saved, int64_t next_id);

 private:
  struct Stretch {
    int64_t begin, end;
  };
  int64_t Limit() const;  // positions from here on may not be taken yet
  int64_t EndOf(int64_t begin) const;

  // Positions are counted through the run: epoch * samples + position of the epoch.
  Run run_;
  int64_t next_id_;
  int64_t epoch_ = 0;
  int64_t next_ = 0;  // from here on none was ever taken
  int64_t closed_positions_ = 0;
  std::map<int64_t, Lease> open_;  // by id
  std::deque<Stretch> free_;       // taken before and given back; in order
  Lease closed_;
};

}  // namespace trireme
