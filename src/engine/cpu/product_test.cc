// Products at many odd shapes, thin, small and blocked, against plain loops.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/random.h"
#include "engine/cpu/call.h"
#include "engine/cpu/guarded_scratch_test.h"
#include "engine/cpu/targets.h"
#include "graph/op.h"

namespace trireme::cpu {
namespace {

using Floats = std::vector<float>;

Floats Numbers(uint64_t key, size_t size) {
  const Random random(key);
  Floats numbers(size);
  for (size_t i = 0; i < size; ++i) numbers[i] = static_cast<float>(random.Uniform(i) - 0.5);
  return numbers;
}

// a[rows][depth] b[depth][columns] in double.
std::vector<double> Product(const Floats& a, const Floats& b, size_t rows, size_t depth,
                            size_t columns) {
  std::vector<double> c(rows * columns, 0.0);
  for (size_t i = 0; i < rows; ++i) {
    for (size_t k = 0; k < depth; ++k) {
      for (size_t j = 0; j < columns; ++j) {
        c[i * columns + j] += double(a[i * depth + k]) * b[k * columns + j];
      }
    }
  }
  return c;
}

Floats Transposed(const Floats& a, size_t rows, size_t columns) {
  Floats t(a.size());
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  }
  return t;
}

void ExpectNear(const Floats& got, const std::vector<double>& want, size_t depth) {
  ASSERT_EQ(got.size(), want.size());
  const double tolerance = 2e-7 * std::sqrt(double(depth)) + 1e-6;
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << "at " << i;
}

// A dense layer of the given size as the three products that it is made of. Its scratch is planned
// for `capacity` samples, at least as many as there are.
class DenseLayer {
 public:
  DenseLayer(const KernelTable& kernels, Team& team, size_t count, size_t in, size_t out,
             size_t capacity = 0)
      : kernels_(kernels),
        team_(team),
        count_(count),
        in_(in),
        out_(out),
        capacity_(std::max(capacity, count)) {}

  Floats Forward(const Floats& x, const Floats& weight) {
    return Run("dense", {{&x, in_}}, out_, weight, {});
  }
  Floats GradInput(const Floats& dy, const Floats& weight) {
    return Run("dense_grad_input", {{&dy, out_}}, in_, weight, {});
  }
  Floats GradInputReluGrad(const Floats& dy, const Floats& y, const Floats& weight) {
    return Run("dense_grad_input_relu_grad", {{&dy, out_}, {&y, in_}}, in_, weight, {});
  }
  // `weights` are added to, or overwritten.
  Floats GradWeights(const Floats& x, const Floats& dy, Floats weights, bool add = true) {
    Run("dense_grad_weights", {{&x, in_}, {&dy, out_}}, 0, {}, &weights, add);
    return weights;
  }

 private:
  struct In {
    const Floats* numbers;
    size_t size;
  };

  Floats Run(const char* op, const std::vector<In>& inputs, size_t out_size, const Floats& state,
             Floats* gradients, bool add = false) {
    Call call;
    call.attributes.bias = false;
    for (size_t i = 0; i < inputs.size(); ++i) {
      call.inputs[i] = {const_cast<float*>(inputs[i].numbers->data()),
                        {.channels = int(inputs[i].size)}};
    }
    Floats out(count_ * out_size);
    call.outputs[0] = {out.data(), {.channels = int(out_size)}};
    call.parameters[0] = {0, in_ * out_};
    const KernelRow& row = *kernels_.Find(op);
    const GuardedScratch scratch(row.scratch(call, capacity_, size_t(team_.size())));
    const Batch batch;
    row.run(call, {&batch, count_, state.data(), gradients ? gradients->data() : nullptr, add,
                   scratch.data(), &team_});
    EXPECT_TRUE(scratch.IsWhole()) << op;
    return out;
  }

  const KernelTable& kernels_;
  Team& team_;
  size_t count_, in_, out_, capacity_;
};

class ProductTest : public testing::TestWithParam<int64_t> {
 protected:
  ProductTest() {
    OnlyTarget only(GetParam());
    kernels_ = ChooseKernels();
  }

  // Overwritten and added to.
  void CheckGradWeights(Team& team, size_t count, size_t in, size_t out) {
    const Floats x = Numbers(1, count * in), dy = Numbers(2, count * out);
    auto sum = Product(Transposed(x, count, in), dy, in, count, out);
    DenseLayer layer(kernels_, team, count, in, out);
    ExpectNear(layer.GradWeights(x, dy, Floats(in * out, NAN), false), sum, count);
    for (double& each : sum) each += 3;
    ExpectNear(layer.GradWeights(x, dy, Floats(in * out, 3)), sum, count);
  }

  KernelTable kernels_;
};

TEST_P(ProductTest, AgreesWithPlainLoopsAtOddSizes) {
  Team team(2);
  const size_t sizes[] = {1, 2, 3, 5, 8, 13, 16, 17, 31, 33, 64, 100};
  uint64_t key = 0;
  for (const size_t count : sizes) {
    for (const size_t in : sizes) {
      for (const size_t out : sizes) {
        SCOPED_TRACE(fmt::format("{} x {} x {}", count, in, out));
        const Floats x = Numbers(++key, count * in), w = Numbers(++key, in * out);
        const Floats dy = Numbers(++key, count * out), before = Numbers(++key, in * out);
        DenseLayer layer(kernels_, team, count, in, out);
        ExpectNear(layer.Forward(x, w), Product(x, w, count, in, out), in);
        ExpectNear(layer.GradInput(dy, w), Product(dy, Transposed(w, in, out), count, out, in),
                   out);
        auto sum = Product(Transposed(x, count, in), dy, in, count, out);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += before[i];
        ExpectNear(layer.GradWeights(x, dy, before), sum, count);
      }
    }
  }
}

// Vectors along the depth, parts of them, and parts of the columns.
TEST_P(ProductTest, GradientsOfFewColumnsAgreeWithPlainLoops) {
  Team team(2);
  for (size_t out = 1; out <= 26; ++out) {
    for (const size_t in : {1, 3, 15, 20, 32, 47, 66, 130}) {
      for (const size_t count : {2, 8, 19, 600}) {
        if (count == 600 && in != 20 && in != 130) continue;  // takes long
        SCOPED_TRACE(fmt::format("{} x {} x {}", count, in, out));
        CheckGradWeights(team, count, in, out);
      }
    }
  }
}

// Longer than the blocks in each direction.
TEST_P(ProductTest, AgreesWithPlainLoopsBeyondABlock) {
  Team team(2);
  const size_t shapes[][3] = {{1, 700, 300},  {9, 1000, 70}, {801, 40, 37},  {20, 30, 900},
                              {400, 530, 18}, {50, 801, 33}, {45, 700, 600}, {5003, 33, 20},
                              {5003, 70, 5},  {1200, 50, 10}};
  for (const auto& [count, in, out] : shapes) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", count, in, out));
    const Floats x = Numbers(1, count * in), w = Numbers(2, in * out), dy = Numbers(3, count * out);
    DenseLayer layer(kernels_, team, count, in, out);
    ExpectNear(layer.Forward(x, w), Product(x, w, count, in, out), in);
    ExpectNear(layer.GradInput(dy, w), Product(dy, Transposed(w, in, out), count, out, in), out);
    auto sum = Product(Transposed(x, count, in), dy, in, count, out);
    ExpectNear(layer.GradWeights(x, dy, Floats(in * out)), sum, count);
    for (double& each : sum) each += 7;
    ExpectNear(layer.GradWeights(x, dy, Floats(in * out, 7)), sum, count);
  }
}

// Sums that leave the second cache, in two chunks of depth.
TEST_P(ProductTest, GradientsByManyWeightsAgreeWithPlainLoops) {
  Team team(2);
  CheckGradWeights(team, 260, 729, 723);
}

TEST_P(ProductTest, ThreadsDoNotChangeABit) {
  // The second is larger than a cache: few threads pack their own panels, many share them. The
  // third's and fourth's rows are summed in parts; the fifth has few columns and many rows of C;
  // the sixth one's sums of a weight gradient leave the second cache; of the last, which has few
  // rows, each thread packs what it multiplies.
  const size_t shapes[][3] = {{150, 290, 75}, {30, 700, 600}, {9001, 33, 70}, {9001, 33, 20},
                              {700, 900, 10}, {20, 729, 723}, {50, 300, 310}};
  for (const auto& [count, in, out] : shapes) {
    const Floats x = Numbers(1, count * in), w = Numbers(2, in * out), dy = Numbers(3, count * out);
    std::vector<Floats> seen[3];
    for (int threads : {1, 2, 3, 4}) {
      Team team(threads);
      DenseLayer layer(kernels_, team, count, in, out);
      seen[0].push_back(layer.Forward(x, w));
      seen[1].push_back(layer.GradInput(dy, w));
      seen[2].push_back(layer.GradWeights(x, dy, Floats(in * out)));
    }
    for (const auto& results : seen) {
      for (const Floats& result : results) EXPECT_EQ(result, results[0]);
    }
  }
}

// Thin, cut along the depth, with more panels than a cache holds.
TEST_P(ProductTest, AReluInFrontPassesWhatIsPositive) {
  Team team(2);
  const size_t shapes[][3] = {{3, 40, 50}, {50, 300, 310}, {400, 18, 530}, {45, 700, 600}};
  for (const auto& [count, in, out] : shapes) {
    SCOPED_TRACE(fmt::format("{} x {} x {}", count, in, out));
    const Floats y = Numbers(1, count * in), w = Numbers(2, in * out), dy = Numbers(3, count * out);
    DenseLayer layer(kernels_, team, count, in, out);
    Floats want = layer.GradInput(dy, w);
    for (size_t i = 0; i < want.size(); ++i) want[i] = y[i] > 0 ? want[i] : 0;
    EXPECT_EQ(layer.GradInputReluGrad(dy, y, w), want);
  }
}

// Few samples may be multiplied in another way than many, for which the panels are no more than a
// cache holds.
TEST_P(ProductTest, FewSamplesFindRoomInTheScratchOfMany) {
  Team team(2);
  const size_t in = 9001, out = 30;
  const Floats w = Numbers(1, in * out);
  for (const size_t count : {1, 3, 8, 9}) {
    SCOPED_TRACE(count);
    const Floats x = Numbers(2, count * in), dy = Numbers(3, count * out);
    DenseLayer layer(kernels_, team, count, in, out, /*capacity=*/64);
    ExpectNear(layer.Forward(x, w), Product(x, w, count, in, out), in);
    const auto dx = Product(dy, Transposed(w, in, out), count, out, in);
    ExpectNear(layer.GradInput(dy, w), dx, out);
    layer.GradInputReluGrad(dy, x, w);
    layer.GradWeights(x, dy, Floats(in * out));
  }
}

TEST_P(ProductTest, NotANumberFlowsThrough) {
  Team team(1);
  for (const size_t count : {2, 100}) {
    Floats x = Numbers(1, count * 40);
    x[41] = NAN;
    const Floats y = DenseLayer(kernels_, team, count, 40, 50).Forward(x, Numbers(2, 40 * 50));
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(std::isnan(y[i]), i / 50 == 1);
  }
}

INSTANTIATE_TEST_SUITE_P(All, ProductTest, testing::ValuesIn(TargetsForThreads()), TargetText);

}  // namespace
}  // namespace trireme::cpu
