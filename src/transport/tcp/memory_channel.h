#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "transport/memory/image.h"
#include "transport/tcp/memory_way.h"
#include "transport/tcp/wire.h"

namespace trireme {

// A client's connection to a box, and what it has said there and not yet heard of. One thread at a
// time.
class MemoryChannel {
 public:
  // A word on its way, with the values that go along and where the answer's go.
  struct Exchange {
    Word word = {};
    std::span<const std::byte> values = {};
    std::span<std::byte> into = {};  // as many bytes as the answer must bring
    std::string* text = nullptr;     // or here, whatever it brings
    Reply answer = {};
    bool done = false;
    std::exception_ptr error = nullptr;  // why it will never be
  };

  MemoryChannel(const TcpMemorySetup& setup, uint64_t client);
  ~MemoryChannel();  // the session ends

  // Says the word; `exchange` stays where it is until it is done.
  void Say(Exchange& exchange);
  // Hears answers until this one is there. Throws PeerLost, MemoryRenewed; not what was refused.
  void Await(Exchange& exchange);

  uint64_t incarnation() const { return incarnation_; }
  bool connected() const { return wire_ && !wire_->IsGone(); }
  std::string LocalHost() const { return wire_->LocalHost(); }  // of a connected one

 private:
  void Connect();  // until it is connected or the time is up
  void Write(const Exchange& exchange);
  void Hear();  // the next answer
  void Mend();  // connects again and says all again
  [[noreturn]] void Lose(std::exception_ptr error);

  const TcpMemorySetup setup_;
  const uint64_t client_;
  uint64_t incarnation_ = 0;  // of the box
  std::unique_ptr<Wire> wire_;
  std::deque<Exchange*> said_;
  std::exception_ptr lost_;  // why nothing more can be said
};

}  // namespace trireme
