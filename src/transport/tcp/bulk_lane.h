#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "transport/memory/bulk.h"
#include "transport/memory/word.h"
#include "transport/tcp/memory_channel.h"

namespace trireme {

constexpr size_t kLeastBulk = 64 << 10;  // bytes: below, the connection is as fast

// A client's end for long values, beside the connection on which it says its words. It opens
// another pair of ends where one has broken, until timeout_s. One thread at a time.
class BulkLane {
 public:
  // Says a word and gives the answer, whatever its verdict; `text` gets what follows it.
  using Ask = std::function<Reply(const Word&, std::span<const std::byte>, std::string* text)>;
  // The first end is opened at once. Throws Error where that is not possible.
  BulkLane(std::string provider, OpenBulk open, MemoryChannel& channel, Ask ask, double timeout_s);
  ~BulkLane();

  // The values of a change, into the slot: the word is to be said next, with kByBulk.
  void Write(const Word& change, std::span<const std::byte> values);
  uint64_t Read(Word get, std::span<std::byte> into);  // the version
  void Probe(std::span<std::byte> into);               // what an end shows first
  void Close();                                        // the box's end

 private:
  void Open();
  template <class Fn>
  void Retry(double seconds, const Fn& fn);  // until it no longer breaks
  BulkPlace AskPlace(const Word& word, uint64_t* version = nullptr);
  bool GoesOn() const { return channel_.connected(); }

  const std::string provider_;
  const OpenBulk open_;
  MemoryChannel& channel_;
  const Ask ask_;
  const double timeout_s_;
  std::unique_ptr<BulkEnd> end_;
  BulkPlace greeting_;
};

}  // namespace trireme
