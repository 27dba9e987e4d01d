#pragma once
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace trireme {

[[noreturn]] void FailToStart(std::string_view who, const std::system_error& error);

// A thread, or an Error that says which one could not be started and what may limit their number.
// `who`: as in "the thread of rank 3".
template <class Work>
std::jthread StartThread(std::string_view who, Work&& work) {
  try {
    return std::jthread(std::forward<Work>(work));
  } catch (const std::system_error& error) {
    FailToStart(who, error);
  }
}

}  // namespace trireme
