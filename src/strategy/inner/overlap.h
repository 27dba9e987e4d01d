#pragma once

namespace trireme {

// What of a step's communication goes on while engines compute.
struct Overlap {
  bool reduce = true;      // buckets of gradients leave while backward goes on
  bool broadcast = false;  // buckets of new weights come while the next forward has begun
};

}  // namespace trireme
