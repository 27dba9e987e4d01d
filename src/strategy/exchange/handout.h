#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "strategy/exchange/lease_source.h"
#include "strategy/exchange/server_line.h"
#include "strategy/server/handout_board.h"

namespace trireme {

// Leases that a worker takes by itself, from a number in the memory that holds the centre (see
// handout_board.h): whoever is free takes the next few. Nobody takes them back, so what was void is
// done again by the worker that has them. A thread takes the next ones while the worker is busy
// with the last.
class Handout final : public LeaseSource {
 public:
  struct Place {
    Memory& memory;
    LeaseTable::Run run;  // as the server's
    int64_t client = 0;   // this one's number
    int64_t clients = 1;
    double timeout_s = 60;  // for what rank 0 has to do first
  };
  // `line`: to the server, which counts what was refused.
  Handout(const Place& place, Ahead ahead, ServerLine& line);

  Answer Claim(bool holds, Lease& lease) override;
  void AwaitServer() override;
  bool holds_void() const override;
  void Stop() override;
  std::optional<Standing> Release(std::span<const int64_t> leases) override;
  void Void(const Standing& standing, std::span<const int64_t> leases) override;
  void AwaitReader(int64_t version) override;
  double waited_s() const override { return waited_s_; }

 private:
  // The leases in their order.
  class Walk {
   public:
    Walk(const LeaseTable::Run& run, const HandoutNews& news);
    std::optional<Lease> Next();  // nothing: there are no more
    int64_t walked() const { return walked_; }
    int64_t left() const { return table_.untaken(); }  // positions, of this epoch behind a barrier

   private:
    LeaseTable table_;
    int64_t walked_ = 0;
  };

  // The thread's.
  void Serve(const std::stop_token& stop);
  void Begin();
  void Draw(int64_t most);
  void AwaitEpoch();
  void Read();
  HandoutNews News(uint64_t& version) const;  // what the board says now

  // With the mutex.
  void WantMore();
  bool AtBorder() const { return !ready_.empty() && ready_.front().epoch > allowed_; }

  const Place place_;
  const Ahead ahead_;
  ServerLine& line_;
  double claimed_at_ = 0;  // the lease that is worked on; 0: none
  double step_s_;          // what the work on a lease takes, on average; at first a guess
  double waited_s_ = 0;
  bool settled_ = true;  // the worker knows of all that it has pushed whether it counts

  int64_t reader_at_ = 0;  // of the centre's versions, when it was asked for last: AwaitReader's

  // Since the thread began.
  Region tickets_, board_;
  // The thread's.
  uint64_t read_ = 0;    // version of the board
  double heard_at_ = 0;  // ... when it had become that
  std::optional<Walk> walk_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable_any changed_;
  std::optional<HandoutNews> first_;  // what the board said; then it has begun
  int64_t allowed_ = -1;              // epochs up to this one
  int64_t wanted_ = 0;                // leases; 0: none is to be drawn
  int64_t drawn_at_once_ = 0;         // the last time
  double draw_s_ = 0;                 // how long that took
  bool finished_ = false;             // there are no more
  bool over_ = false;                 // the run ends early: nothing is begun any more
  bool stopped_ = false;              // this worker shall end: it only does what it has
  bool void_ = false;
  std::deque<Lease> ready_;        // not claimed yet
  std::map<int64_t, Lease> open_;  // claimed and not pushed, by id
  std::exception_ptr error_;

  std::jthread thread_;  // last: uses the rest
};

}  // namespace trireme
