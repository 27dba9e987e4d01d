#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "strategy/server/lease_table.h"
#include "transport/memory.h"

namespace trireme {

// Leases that nobody grants: where a client that dies ends the job (Memory::one_fate), none is ever
// taken back, so the order in which a lease table gives them is fixed from the start. It lies in
// memory; a worker that is free moves a number there and has the leases of these places in that
// order (Handout). The server follows by what adds to the centre name (MemoryLedger), and says when
// an epoch is over. Notes are kept for a while only, so it also says how far it has read them: who
// is ahead of it by kMostUnread adds adds no more until it has gone on.
constexpr const char* kTicketRegion = "handout.tickets";  // one number: leases that were taken
constexpr const char* kBoardRegion = "handout.board";     // what HandoutNews has

constexpr int64_t kHandoutStopped = int64_t(1) << 62;  // tickets from here on are none

// Half of what is kept, for a worker may add once more before it knows.
constexpr int64_t kMostUnread = kKeptNotes / 2;

struct HandoutNews {
  int64_t epoch = 0;  // leases of later ones are not to be worked on yet
  bool stopped = false;
  int64_t read = 0;            // version of the centre up to which the server has read
  int64_t first_id = 0;        // of leases
  std::vector<int64_t> table;  // LeaseTable::Save, before the first one was taken

  std::vector<int64_t> Pack() const;
  static std::optional<HandoutNews> Unpack(std::vector<int64_t> values);  // nothing: it is none
};

// The server's side. One thread.
class HandoutBoard {
 public:
  explicit HandoutBoard(Memory& memory) : memory_(memory) {}
  void Begin(const LeaseTable& table, uint64_t read);
  void Read(uint64_t version);  // of the centre, so far: told now and then
  void Beat();                  // those who wait hear that the server is there
  void Allow(int64_t epoch);    // and those before
  void Stop();                  // nobody takes any more, nor begins what it has taken

 private:
  void Put(uint64_t index, int64_t value);

  Memory& memory_;
  Region tickets_, board_;
  int64_t told_ = 0;  // that so much is read
  bool stopped_ = false;
};

}  // namespace trireme
