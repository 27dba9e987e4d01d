#pragma once
#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/terminal.h"

namespace trireme {

class OutputError : public Error {
 public:
  using Error::Error;
};

// What a command prints as its result. Each call is one write, so another program sees it at once.
// When the reader is gone (`trireme list | head -1`) the rest is dropped in silence: a run must not
// end for it. Any other failure, such as a full disk, is an OutputError. One thread.
class Output {
 public:
  explicit Output(int fd = 1) : fd_(fd) {}

  bool coloured() const { return ShowsColour(fd_); }

  void Write(std::string_view text);

  // Whether a flag for a file names this instead: as -, as /dev/stdout, or by its own name.
  bool Is(const std::string& path) const;

  template <class... A>
  void Print(fmt::format_string<A...> text, A&&... args) {
    Write(fmt::format(text, std::forward<A>(args)...));
  }

 private:
  const int fd_;
  bool reader_gone_ = false;
};

}  // namespace trireme
