#pragma once

// A bug, not an input: prints where and aborts. User input never reaches one.
#define TRIREME_ASSERT(condition)                                              \
  do {                                                                         \
    if (!(condition)) ::trireme::AssertFailed(#condition, __FILE__, __LINE__); \
  } while (false)

namespace trireme {
[[noreturn]] void AssertFailed(const char* condition, const char* file, int line);
}  // namespace trireme
