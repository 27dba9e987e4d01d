#pragma once
#include <time.h>

namespace trireme {

inline double ThreadSeconds() {  // that a processor worked for this thread
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

}  // namespace trireme
