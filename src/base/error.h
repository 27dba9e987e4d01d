#pragma once
#include <fmt/core.h>

#include <exception>
#include <string>
#include <utility>

namespace trireme {

// What went wrong, in a sentence for the user: who, what, the values, which key to turn.
// A layer above adds what only it knows: `catch (Error& e) { e.Add("in step {}", step); throw; }`.
class Error : public std::exception {
 public:
  explicit Error(std::string message) : message_(std::move(message)) {}
  template <class... Args>
  requires(sizeof...(Args) > 0) explicit Error(fmt::format_string<Args...> text, Args&&... args)
      : message_(fmt::format(text, std::forward<Args>(args)...)) {}

  template <class... Args>
  void Add(fmt::format_string<Args...> text, Args&&... args) {
    message_ += " (" + fmt::format(text, std::forward<Args>(args)...) + ")";
  }

  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

// Wrong usage: a flag, a recipe key, a combination that makes no sense. Exit code 2.
class UsageError : public Error {
 public:
  using Error::Error;
};

// A member of a group is gone; the group is finished.
class PeerLost : public Error {
 public:
  using Error::Error;
};

}  // namespace trireme
