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

// Who works on which positions of the run, and which are done. Knows only positions: no weights,
// no transport. An epoch begins when the one before is drained. Ids never repeat; after a restart
// they go on at a number from which the owner knows that none was given out. One thread.
class LeaseTable {
 public:
  // A run of `total` positions, `samples` in each epoch, `size` in each lease (the last of an epoch
  // may be shorter). `cut`, if given, says instead where a lease ends that begins at a position.
  using Cut = std::function<int64_t(int64_t begin)>;
  LeaseTable(int64_t samples, int64_t total, int64_t size, int64_t first_id, Cut cut = {});

  std::optional<Lease> Take(int client);  // nothing: all of the epoch is taken
  std::optional<int64_t> next() const;    // where the lease begins that Take would give
  bool Owns(int64_t id, int client) const;
  bool Open(int64_t id) const { return open_.contains(id); }
  const Lease& Get(int64_t id) const;  // an open one
  const Lease& Close(int64_t id);      // its update is applied; valid until the next call
  int Drop(int client);                // its open leases are free again; how many there were
  // Its update is here, but waits for others before it is applied: the lease stays open, and nobody
  // owns it, so it is not dropped.
  void Hold(int64_t id);
  // Opens the next epoch. Only when drained().
  void NextEpoch();

  int64_t epoch() const { return epoch_; }
  bool drained() const;   // every position of this epoch counts
  bool finished() const;  // and it was the last: nothing is left
  bool epoch_complete() const { return EpochEnd() == samples_; }  // not cut short by the run's end
  int64_t untaken() const;  // positions of this epoch that wait for a client
  int64_t open() const { return int64_t(open_.size()); }
  int64_t closed_positions() const { return closed_positions_; }  // of the whole run

  // Open leases are saved as free ones: their updates are not in the snapshot.
  std::vector<int64_t> Save() const;
  // What Save wrote, by a run of the same samples; the total may be larger. Ids go on at
  // `next_id`. Throws Error for numbers that cannot be a table.
  void Load(std::span<const int64_t> saved, int64_t next_id);

 private:
  struct Stretch {
    int64_t begin, end;
  };
  int64_t EpochEnd() const;  // positions of the present epoch
  int64_t EndOf(int64_t begin) const { return cut_ ? cut_(begin) : begin + size_; }

  int64_t samples_, total_, size_;
  Cut cut_;
  int64_t next_id_;
  int64_t epoch_ = 0;
  int64_t next_ = 0;  // positions of the epoch from here on were never taken
  int64_t closed_positions_ = 0;
  std::map<int64_t, Lease> open_;  // by id
  std::deque<Stretch> free_;       // taken before and given back; in order
  Lease closed_;
};

}  // namespace trireme
