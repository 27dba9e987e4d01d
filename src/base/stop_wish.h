#pragma once

namespace trireme {

// A wish to stop, for which a loop asks after each step: a signal's (base/signals.h), or that of a
// program which trains by the library. Any thread may ask, as often as it likes.
class StopWish {
 public:
  virtual ~StopWish() = default;

  // As the number of a signal: 0 is none, SIGTERM stands for what was no signal. Once it is there
  // it stays.
  virtual int received() const noexcept = 0;
  bool stop() const noexcept { return received() != 0; }
  int ExitCode() const noexcept { return ExitCodeOf(received()); }
  // 130 after SIGINT, 143 after the others, 0 without.
  static int ExitCodeOf(int signal) noexcept;
};

}  // namespace trireme
