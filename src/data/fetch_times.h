#pragma once
#include <cstdint>

namespace trireme {

// Where the time of fetching samples went: seconds of the threads that fetched them.
struct FetchTimes {
  double read = 0;    // bytes of files; samples that lie decoded in memory
  double decode = 0;  // JPEG and PNG
  double resize = 0;  // and normalising, and augmenting
  double cpu = 0;     // of all these, what a processor worked

  double Total() const { return read + decode + resize; }

  // As many seconds as `seconds`, in the proportions of `some`.
  void AddLike(const FetchTimes& some, double seconds) {
    const double factor = some.Total() > 0 ? seconds / some.Total() : 0;
    read += factor * some.read;
    decode += factor * some.decode;
    resize += factor * some.resize;
  }
  void Add(const FetchTimes& more, double times = 1) {
    read += times * more.read;
    decode += times * more.decode;
    resize += times * more.resize;
    cpu += times * more.cpu;
  }
};

}  // namespace trireme
