#pragma once
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace trireme {

// Memory of a process and of those that it forks afterwards, all bytes zero at first. T is one that
// needs no constructor then.
template <class T>
class SharedArray {
 public:
  explicit SharedArray(int count) : bytes_(size_t(count) * sizeof(T)) {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      throw Error("not enough memory to start {} ranks: {}", count, std::strerror(errno));
    }
    data_ = static_cast<T*>(memory);
  }
  ~SharedArray() { munmap(data_, bytes_); }
  SharedArray(const SharedArray&) = delete;
  SharedArray& operator=(const SharedArray&) = delete;
  T& operator[](int i) { return data_[i]; }

 private:
  const size_t bytes_;
  T* data_;
};

}  // namespace trireme
