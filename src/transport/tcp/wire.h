#pragma once
#include <atomic>
#include <cstddef>
#include <span>
#include <string>

#include "base/error.h"
#include "transport/deadline.h"

namespace trireme {

// The connection is gone: another one may do.
class WireBroken : public Error {
 public:
  using Error::Error;
};

// ... after some of the bytes that were to be read.
class WireCut : public WireBroken {
 public:
  using WireBroken::WireBroken;
};

// The other end of a connection is noticed to be gone after so long, also where nothing is sent.
// 0: not any more.
void NoticeSilence(int fd, double timeout_s);

// A connected socket for threads that wait for their bytes themselves: no loop moves them. One
// thread reads and one writes at a time; any thread may call Shut.
class Wire {
 public:
  explicit Wire(int fd);  // takes it over
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  static constexpr Deadline kNever = Deadline::max();

  // All of these bytes; WireBroken, or WireCut, at the deadline, too.
  void Read(std::span<std::byte> into, Deadline deadline);
  void Write(std::span<const std::byte> first, std::span<const std::byte> second,
             Deadline deadline);
  // As many bytes as go at once, perhaps none after `patience_s`.
  size_t WriteSome(std::span<const std::byte> bytes, double patience_s);
  bool AwaitInput(double seconds);  // also where there is only an end to be read
  bool IsGone() const;              // hung up by the other side
  std::string LocalHost() const;    // the address of this machine, as the other side knows it
  void NoticeSilence(double timeout_s) { trireme::NoticeSilence(fd_, timeout_s); }
  void Shut();  // wakes Read and Write, which find it broken

 private:
  bool Await(short what, Deadline deadline);  // false: the deadline passed
  const int fd_;
};

}  // namespace trireme
