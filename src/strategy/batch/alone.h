#pragma once
#include "strategy/batch/batch_objective.h"
#include "strategy/batch/vectors.h"

namespace trireme {

// One rank does it all, portion after portion: the same bits every time.
class BatchAlone : public BatchObjective {
 public:
  BatchAlone(PortionGradient& portions, const Layout& layout, int num_portions, int vectors,
             double decay);

  double Dot(int x, int y) override { return vectors_.Dot(x, y); }
  void Scale(double a, int x) override { vectors_.Scale(a, x); }
  void Axpy(double a, int x, int y) override { vectors_.Axpy(a, x, y); }
  void Copy(int from, int to) override { vectors_.Copy(from, to); }
  double Evaluate(int point, int gradient) override;
  void Put(int vector, std::span<const float> values) override { vectors_.Put(vector, values); }
  void Get(int vector, std::span<float> values) override { vectors_.Get(vector, values); }
  void Show(int vector, std::span<const float> statistics) override;

 private:
  PortionGradient& portions_;
  const Layout& layout_;
  const int num_portions_;
  Vectors vectors_;
  Buffer summand_;
};

}  // namespace trireme
