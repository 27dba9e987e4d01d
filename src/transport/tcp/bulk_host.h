#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "transport/memory/bulk.h"
#include "transport/memory/store.h"

namespace trireme {

// What a box offers for long values.
struct BulkOffer {
  std::string provider;  // empty: nothing
  OpenBulk open = {};
};

// What an end shows first: who reads it has found the right box. Its first bytes are the box's
// incarnation, the rest is for trying how fast it comes.
constexpr size_t kBulkGreeting = 1 << 20;

// The box's end for one client, and what it says to the words that belong to it. The client may
// write into its slot from the moment when it has asked where it is, and may read a region from a
// kGet until its kRelease, or any other word. One thread at a time; a thread of its own lets the
// transfers happen.
class BulkHost {
 public:
  struct Answer {
    Reply reply;
    std::string rest;  // that follows it
  };

  // `client_end`: its address. Throws Error.
  BulkHost(MemoryStore& store, uint32_t session, uint64_t client, std::unique_ptr<BulkEnd> end,
           const std::string& client_end, std::span<std::byte> greeting, double timeout_s);
  ~BulkHost();

  Answer Greet();                       // kBulk
  Answer GiveSlot(const Word& word);    // kSlot
  void ForgetSlot() { slot_.reset(); }  // it may become a region: nobody is to write there any more
  Reply Change(const Word& word);       // kPut, kAccumulate: the values are in the slot
  Answer Hold(const Word& word);        // kGet: keeps the region as it is
  Reply Release();                      // kRelease

  bool holds() const { return held_.has_value(); }
  void LetGo() { held_.reset(); }
  void GiveWay();  // to somebody who has wanted to change the held region for long

 private:
  BulkPlace ShareRegion(const RegionRecord& region);
  void Serve(const std::stop_token& stop);
  void Expect(bool transfers);

  MemoryStore& store_;
  const uint32_t session_;
  const uint64_t client_;
  const double timeout_s_;
  const std::unique_ptr<BulkEnd> end_;
  const std::unique_ptr<BulkEnd::Shared> greeting_;
  std::span<std::byte> slot_place_;
  std::unique_ptr<BulkEnd::Shared> slot_;
  std::map<std::pair<uint64_t, uint64_t>, std::unique_ptr<BulkEnd::Shared>> regions_;
  std::optional<ReadLock> held_;
  Deadline held_until_ = {};
  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool expects_ = true;  // guarded by mutex_
  std::jthread thread_;
};

}  // namespace trireme
