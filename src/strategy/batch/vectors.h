#pragma once
#include <span>
#include <vector>

#include "flat/device.h"
#include "flat/layout.h"

namespace trireme {

// The stretch of some vectors that lies here: arithmetic with them by their numbers. A vector is as
// long as a model's weights. One thread.
class Vectors {
 public:
  // `decay`: of the weights that decay (Layout::decays), as a penalty on the loss.
  Vectors(Device& device, Queue& queue, const Layout& layout, Range stretch, int count,
          double decay);

  Range stretch() const { return stretch_; }
  Slice at(int vector) const { return vectors_.at(size_t(vector)); }
  int count() const { return int(vectors_.size()); }

  double Dot(int x, int y);  // blocks until the queue is done
  void Scale(double a, int x);
  void Axpy(double a, int x, int y);
  void Copy(int from, int to);

  // This stretch's part of decay / 2 |weights|^2, whose gradient is added to `gradient`. Blocks.
  double AddPenalty(int point, int gradient);

  // To and from the host's memory. Block.
  void Put(int vector, std::span<const float> values);
  void Get(int vector, std::span<float> values);

 private:
  double DotOf(Slice x, Slice y);

  Queue& queue_;
  const Range stretch_;
  const double decay_;
  std::vector<Range> decaying_;  // counted from the start of the stretch
  std::vector<Buffer> vectors_;
  Buffer dot_;
};

}  // namespace trireme
