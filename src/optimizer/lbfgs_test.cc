#include "optimizer/lbfgs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "base/error.h"
#include "base/state_image.h"

namespace trireme {
namespace {

using Doubles = std::vector<double>;
using Function = std::function<double(const Doubles& x, Doubles& gradient)>;

class Plain : public Objective {
 public:
  Plain(Function function, Doubles start, int history)
      : function_(std::move(function)),
        vectors_(size_t(Lbfgs::VectorsFor(history)), Doubles(start.size())) {
    vectors_[Lbfgs::kPoint] = std::move(start);
  }
  double Dot(int x, int y) override {
    double sum = 0;
    for (size_t i = 0; i < at(x).size(); ++i) sum += at(x)[i] * at(y)[i];
    return sum;
  }
  void Scale(double a, int x) override {
    for (double& v : at(x)) v *= a;
  }
  void Axpy(double a, int x, int y) override {
    for (size_t i = 0; i < at(x).size(); ++i) at(y)[i] += a * at(x)[i];
  }
  void Copy(int from, int to) override { at(to) = at(from); }
  double Evaluate(int point, int gradient) override {
    ++evaluations;
    return function_(at(point), at(gradient));
  }
  Doubles& at(int x) { return vectors_.at(size_t(x)); }
  const Doubles& point() { return at(Lbfgs::kPoint); }

  int evaluations = 0;

 private:
  const Function function_;
  std::vector<Doubles> vectors_;
};

// Valleys whose curvatures differ by `condition`, in directions that no axis has.
Function Quadratic(size_t n, double condition) {
  return [n, condition](const Doubles& x, Doubles& g) {
    double value = 0, mean = 0;
    for (size_t i = 0; i < n; ++i) mean += (x[i] - double(i)) / double(n);
    g.assign(n, 0);
    for (size_t i = 0; i < n; ++i) {
      const double c = std::pow(condition, double(i) / double(n - 1));
      const double off = x[i] - double(i);
      value += 0.5 * c * off * off;
      g[i] = c * off + 5 * mean;
    }
    return value + 2.5 * double(n) * mean * mean;
  };
}

double Rosenbrock(const Doubles& x, Doubles& g) {
  double value = 0;
  g.assign(x.size(), 0);
  for (size_t i = 0; i + 1 < x.size(); ++i) {
    const double up = x[i + 1] - x[i] * x[i], side = 1 - x[i];
    value += 100 * up * up + side * side;
    g[i] += -400 * x[i] * up - 2 * side;
    g[i + 1] += 200 * up;
  }
  return value;
}

TEST(LbfgsTest, FindsTheLeastOfQuadratics) {
  for (size_t n : {2, 10, 100}) {
    for (double condition : {1.0, 1e2, 1e4}) {
      Plain f(Quadratic(n, condition), Doubles(n, -3), 10);
      Lbfgs lbfgs({}, f);
      lbfgs.Begin();
      for (int i = 0; i < 3000 && !lbfgs.converged() && lbfgs.value() > 1e-20; ++i) lbfgs.Iterate();
      for (size_t i = 0; i < n; ++i) {
        ASSERT_NEAR(f.point()[i], double(i), 1e-6) << n << ", condition " << condition;
      }
    }
  }
}

TEST(LbfgsTest, FindsTheLeastOfRosenbrock) {
  for (int history : {1, 5, 20}) {
    Plain f(Rosenbrock, {-1.2, 1}, history);
    Lbfgs lbfgs({.history = history}, f);
    lbfgs.Begin();
    int iterations = 0;
    while (lbfgs.value() > 1e-20 && iterations < 200) {
      ASSERT_TRUE(lbfgs.Iterate().step > 0);
      ++iterations;
    }
    EXPECT_NEAR(f.point()[0], 1, 1e-8);
    EXPECT_NEAR(f.point()[1], 1, 1e-8);
    EXPECT_LE(iterations, history > 1 ? 60 : 150) << "history " << history;
  }
  Plain f(Rosenbrock, Doubles(50, -0.5), 10);
  Lbfgs lbfgs({}, f);
  lbfgs.Begin();
  for (int i = 0; i < 500 && lbfgs.value() > 1e-18; ++i) lbfgs.Iterate();
  for (const double x : f.point()) ASSERT_NEAR(x, 1, 1e-6);
}

TEST(LbfgsTest, EveryIterationLowersTheValue) {
  Plain f(Rosenbrock, Doubles(10, 2), 3);
  Lbfgs lbfgs({.history = 3}, f);
  lbfgs.Begin();
  int counted = 1;
  for (int i = 0; i < 50; ++i) {
    const double before = lbfgs.value();
    const Lbfgs::Iteration done = lbfgs.Iterate();
    counted += done.evaluations;
    ASSERT_LT(lbfgs.value(), before);
    ASSERT_TRUE(done.wolfe);
    ASSERT_TRUE(done.kept) << "with the second condition s.y is positive";
    Doubles gradient;
    ASSERT_EQ(lbfgs.value(), Rosenbrock(f.point(), gradient)) << "the point is that of the value";
    ASSERT_EQ(f.at(Lbfgs::kGradient), gradient);
  }
  EXPECT_EQ(counted, f.evaluations);
}

// On the way down a cosine the gradient grows: s.y is negative there.
TEST(LbfgsTest, APairWithoutPositiveCurvatureIsSkipped) {
  const auto cosine = [](const Doubles& x, Doubles& g) {
    g = {-std::sin(x[0])};
    return std::cos(x[0]);
  };
  Plain f(cosine, {0.3}, 5);
  Lbfgs lbfgs({.history = 5, .line = {.curvature = 10}}, f);
  lbfgs.Begin();
  const Lbfgs::Iteration done = lbfgs.Iterate();
  EXPECT_GT(done.step, 0);
  EXPECT_FALSE(done.kept);
  EXPECT_TRUE(lbfgs.LivingPairs().empty());
  for (int i = 0; i < 30 && !lbfgs.converged(); ++i) lbfgs.Iterate();
  EXPECT_NEAR(f.point()[0], 3.14159265, 1e-6);
}

TEST(LbfgsTest, AtTheLeastItStays) {
  Plain f(Quadratic(5, 10), {0, 1, 2, 3, 4}, 5);
  Lbfgs lbfgs({.history = 5}, f);
  lbfgs.Begin();
  EXPECT_EQ(lbfgs.Iterate().step, 0);
  EXPECT_TRUE(lbfgs.converged());
  EXPECT_EQ(f.point(), (Doubles{0, 1, 2, 3, 4}));
}

// The gradient lies, so the line rises: the point and its gradient are as before.
TEST(LbfgsTest, WhereNothingIsLowerNothingChanges) {
  const auto lying = [](const Doubles& x, Doubles& g) {
    g = {-x[0]};
    return x[0] * x[0];
  };
  Plain f(lying, {0.5}, 5);
  Lbfgs lbfgs({.history = 5}, f);
  lbfgs.Begin();
  EXPECT_EQ(lbfgs.Iterate().step, 0);
  EXPECT_TRUE(lbfgs.converged());
  EXPECT_EQ(f.point()[0], 0.5);
  EXPECT_EQ(f.at(Lbfgs::kGradient)[0], -0.5);
  EXPECT_EQ(lbfgs.value(), 0.25);
}

TEST(LbfgsTest, ContinuesWithTheSameBits) {
  for (int until : {1, 3, 9}) {
    Plain f(Rosenbrock, Doubles(8, -1), 4);
    Lbfgs whole({.history = 4}, f);
    whole.Begin();
    for (int i = 0; i < until; ++i) whole.Iterate();
    StateImage image;
    whole.Save(image);
    Plain g(Rosenbrock, f.point(), 4);
    g.at(Lbfgs::kGradient) = f.at(Lbfgs::kGradient);
    for (const int v : whole.LivingPairs()) g.at(v) = f.at(v);
    Lbfgs second({.history = 4}, g);
    second.Load(image);
    for (int i = 0; i < 10; ++i) {
      whole.Iterate();
      second.Iterate();
    }
    EXPECT_EQ(f.point(), g.point()) << "after " << until;
    EXPECT_EQ(whole.value(), second.value());
  }
}

TEST(LbfgsTest, AnotherHistoryIsRefused) {
  Plain f(Rosenbrock, {0, 0}, 4);
  Lbfgs four({.history = 4}, f);
  four.Begin();
  four.Iterate();
  StateImage image;
  four.Save(image);
  Plain g(Rosenbrock, {0, 0}, 5);
  Lbfgs five({.history = 5}, g);
  EXPECT_THROW(five.Load(image), Error);
}

}  // namespace
}  // namespace trireme
