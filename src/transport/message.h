#pragma once
#include <cstdint>
#include <vector>

namespace trireme {

// What travels over a link. `kind` is the users' business; the numbers of one meeting are few, the
// body may be a whole state and is moved, not copied.
struct Message {
  int kind = 0;
  std::vector<int64_t> ints;
  std::vector<float> body;
};

inline uint64_t BytesOf(const Message& message) {
  return message.ints.size() * sizeof(int64_t) + message.body.size() * sizeof(float);
}

}  // namespace trireme
