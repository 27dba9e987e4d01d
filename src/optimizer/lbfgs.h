#pragma once
#include <vector>

#include "base/state_io.h"
#include "optimizer/line_search.h"

namespace trireme {

// A function of many numbers and the vectors to minimise it with, wherever their parts lie: who
// minimises says what to do and sees scalars only. Vectors have numbers, from 0 on.
class Objective {
 public:
  virtual ~Objective() = default;
  virtual double Dot(int x, int y) = 0;
  virtual void Scale(double a, int x) = 0;        // x *= a
  virtual void Axpy(double a, int x, int y) = 0;  // y += a x
  virtual void Copy(int from, int to) = 0;
  // The value at vector `point`; its gradient becomes vector `gradient`.
  virtual double Evaluate(int point, int gradient) = 0;
};

// Limited-memory BFGS (Liu, Nocedal 1989) with a strong Wolfe line search: the direction is the
// gradient, changed by what the last few steps have said about the curvature. One thread.
class Lbfgs {
 public:
  struct Options {
    int history = 10;  // pairs that are kept
    LineSearchOptions line;
  };
  // Its vectors. The caller fills kPoint before Begin and finds the newest point there.
  enum Vector { kPoint, kGradient, kLineStart, kStartGradient, kDirection, kPairs };
  static int VectorsFor(int history) { return kPairs + 2 * history; }

  Lbfgs(const Options& options, Objective& objective);

  void Begin();  // evaluates the point

  struct Iteration {
    double step = 0;      // along the direction; 0: no step lowers the value, nothing has changed
    int evaluations = 0;  // of function and gradient
    bool wolfe = false;   // both conditions hold
    bool kept = false;    // the pair is remembered: its curvature is positive
  };
  Iteration Iterate();

  double value() const { return value_; }
  // Nothing lower was found along the gradient either, or in several iterations in a row nothing
  // that is lower by more than noise.
  bool converged() const { return converged_; }

  // What belongs to it beside the vectors, under "lbfgs.*". The vectors that count between two
  // iterations: point, gradient and pairs.
  void Save(StateWriter& writer) const;
  void Load(const StateReader& reader);  // instead of Begin. Throws Error where it cannot be
  std::vector<int> LivingPairs() const;  // numbers of their vectors, oldest first, s before y

 private:
  int S(int slot) const { return kPairs + 2 * slot; }
  int Y(int slot) const { return kPairs + 2 * slot + 1; }
  int Slot(int age) const;  // of the pair with so many newer ones
  void Direct();
  bool KeepPair();
  Iteration TakeStep();

  const Options options_;
  Objective& f_;
  double value_ = 0;
  bool converged_ = false;
  int level_ = 0;  // iterations in a row that brought no more than noise
  // Pairs: a ring over slots.
  int pairs_ = 0, next_slot_ = 0;
  std::vector<double> curvature_;  // s.y, by slot
  double scale_ = 1;               // s.y / y.y of the newest
};

}  // namespace trireme
