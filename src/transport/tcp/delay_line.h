#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <deque>
#include <span>
#include <vector>

#include "transport/deadline.h"

namespace trireme {

// Makes a connection seem longer than it is (transport.latency_ms): every byte is taken so much
// later than it came, and those on their way do not hold each other up. One thread at a time.
class DelayLine {
 public:
  explicit DelayLine(double latency_s) : latency_s_(latency_s) {}
  bool on() const { return latency_s_ > 0; }

  void Put(std::span<const std::byte> bytes) {  // that have come now
    pieces_.push_back({After(latency_s_), {bytes.begin(), bytes.end()}});
    bytes_ += bytes.size();
  }
  void End() {  // nothing comes any more
    ended_ = true;
    pieces_.push_back({After(latency_s_), {}});
  }
  bool ended() const { return ended_; }
  bool full() const { return bytes_ >= kMostBytes; }

  // When the first of what is on its way is to be taken; kNever: nothing is.
  static constexpr Deadline kNever = Deadline::max();
  Deadline due() const { return pieces_.empty() ? kNever : pieces_.front().due; }
  bool over() const { return ended_ && bytes_ == 0 && due() <= After(0); }
  // How many bytes were due, and fit.
  size_t Take(std::span<std::byte> into) {
    size_t taken = 0;
    while (taken < into.size() && bytes_ > 0 && pieces_.front().due <= After(0)) {
      Piece& first = pieces_.front();
      const size_t n = std::min(into.size() - taken, first.bytes.size() - begin_);
      std::memcpy(into.data() + taken, first.bytes.data() + begin_, n);
      taken += n;
      begin_ += n;
      bytes_ -= n;
      if (begin_ < first.bytes.size()) break;
      pieces_.pop_front();
      begin_ = 0;
    }
    return taken;
  }

 private:
  static constexpr size_t kMostBytes = 256 << 20;  // 2.5 GB/s over 100 ms
  struct Piece {
    Deadline due;
    std::vector<std::byte> bytes;
  };
  const double latency_s_;
  std::deque<Piece> pieces_;
  size_t begin_ = 0;  // of the first piece: bytes that were taken
  size_t bytes_ = 0;  // of all the rest
  bool ended_ = false;
};

}  // namespace trireme
