// Whole models through the plugin, on a card: skipped where there is none, with the reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>

#include "base/error.h"
#include "base/files.h"
#include "engine/check/bytes_check.h"
#include "engine/check/compare.h"
#include "engine/check/model_check.h"
#include "engine/cuda/library.h"
#include "flat/host_memory.h"
#include "flat/staging.h"
#include "graph/layout.h"
#include "graph/models/example_networks_test.h"
#include "graph/models/models.h"
#include "graph/program.h"

namespace trireme::cuda {
namespace {

struct Model {
  ModelOptions options;
  Shape input;
  int classes;
};

std::vector<Model> Models() {
  return {
      {{.name = "mlp:4-30-20-3"}, {1, 1, 4}, 3},
      {{.name = "mlp:30-50-10",
        .activation = "sigmoid",
        .norm = "layer-plain",
        .loss = "squared-error"},
       {1, 1, 30},
       10},
      {{.name = "mlp:30-50-10", .norm = "layer"}, {1, 1, 30}, 10},
      {{.name = "mlp:9-33-5", .activation = "tanh", .norm = "batch", .dropout = 0.3}, {1, 1, 9}, 5},
      {{.name = "mlp:9-33-5", .loss = "absolute-error"}, {1, 1, 9}, 5},
      {{.name = "cnn", .smoothing = 0.1f}, {12, 12, 1}, 10},
  };
}

Graph VitTi() { return BuildModel({.name = "vit_ti", .stochastic_depth = 0.1}, {32, 32, 3}, 10); }

Graph ResNet() { return BuildModel({.name = "resnet18", .stem = "3x3"}, {16, 16, 3}, 10); }

// Of the length of `want`.
double Apart(std::span<const float> got, std::span<const float> want) {
  double off = 0, all = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    const double apart = double(got[i]) - want[i];
    off += apart * apart;
    all += double(want[i]) * want[i];
  }
  return std::sqrt(off / all);
}

// What the loss is multiplied by where small gradients would vanish.
float LossScaleIn(Precision precision, float scale = 1024) {
  return precision == Precision::kFp16 ? scale : 1;
}

class CudaEngineTest : public testing::Test {
 protected:
  void SetUp() override {
    static const Survey survey = AskInChild(TRIREME_CUDA_PLUGIN_FILE);
    if (!survey.problem.empty()) GTEST_SKIP() << survey.problem;
    device_ = Plugin().make_device(0, {});
  }
  const Table& Plugin() { return OpenTable(TRIREME_CUDA_PLUGIN_FILE); }
  // Nothing is measured unless a test says so: every run computes alike.
  std::unique_ptr<Engine> Make(Precision precision,
                               const EngineOptions& options = {.measure = false}) {
    return Plugin().make_engine(*device_, precision, options);
  }

  std::unique_ptr<Device> device_;
};

TEST_F(CudaEngineTest, ModelsAgreeWithRef) {
  const auto engine = Make(Precision::kF32);
  for (const Model& model : Models()) {
    const Graph graph = BuildModel(model.options, model.input, model.classes);
    EXPECT_TRUE(check::CheckModelAgainstRef(*engine, graph, 3, 4)) << model.options.name;
  }
}

TEST_F(CudaEngineTest, ResNetAgreesWithRef) {
  const auto engine = Make(Precision::kF32);
  for (const Graph& graph :
       {ResNet(), BuildModel({.name = "resnet18", .stem = "7x7"}, {64, 64, 3}, 10)}) {
    EXPECT_TRUE(
        check::CheckModelAgainstRef(*engine, graph, 2, 3, {.gradients = 0.02, .norm_bias = 6}));
  }
}

TEST_F(CudaEngineTest, TransformersAgreeWithRef) {
  const auto engine = Make(Precision::kF32);
  const Graph small = BuildModel({.name = "text", .layers = kSmallTransformer}, {20, 24, 3}, 5);
  EXPECT_TRUE(check::CheckModelAgainstRef(*engine, small, 3, 5));
  const Graph vit = BuildModel({.name = "vit_ti", .stochastic_depth = 0.2}, {8, 8, 3}, 10);
  EXPECT_TRUE(check::CheckModelAgainstRef(*engine, vit, 2, 3));
}

// Where two numbers of a window or a sign are close, another one wins: single numbers of a gradient
// differ much, its direction less. Batch-norm over few numbers makes rounding large: what is asked
// here is that no part is missing or turned round, operations by themselves are held tighter.
TEST_F(CudaEngineTest, GradientsPointWhereThoseOfFloatsDo) {
  for (const auto& [precision, far] :
       {std::pair(Precision::kTf32, 0.2), std::pair(Precision::kBf16, 0.5),
        std::pair(Precision::kFp16, 0.2)}) {
    for (const Graph& graph : {BuildModel({.name = "cnn"}, {28, 28, 1}, 10), ResNet(), VitTi(),
                               BuildModel({.name = "resnet18", .stem = "7x7"}, {64, 64, 3}, 10)}) {
      const auto want = check::SummandOf(*Make(Precision::kF32), graph, 6);
      const auto got = check::SummandOf(*Make(precision), graph, 6, LossScaleIn(precision));
      const Layout layout = LayOut(graph);
      EXPECT_NEAR(got[layout.loss()], want[layout.loss()], 0.02 * want[layout.loss()]);
      const double apart =
          Apart(std::span(got).first(layout.weights), std::span(want).first(layout.weights));
      EXPECT_LT(apart, far) << NameOf(precision);
      EXPECT_GT(apart, 0) << NameOf(precision);  // it does round
    }
  }
}

// Convolutions of few channels are folded for tensor cores, with results in cells or one by one.
// Right behind them rounding is not amplified: gradients are close.
TEST_F(CudaEngineTest, FoldedStemsAgree) {
  for (const int size : {64, 66}) {  // 66: 33 results in a row make no cells
    for (const int kernel : {3, 7}) {
      Builder build({size, size, 3});
      ValueId x = build.Add("conv2d", {0},
                            {.channels = 24,
                             .kernel = kernel,
                             .stride = 2,
                             .padding = kernel / 2,
                             .bias = kernel == 3},
                            "conv");
      x = build.Add("relu", {build.Add("batch_norm", {x}, {}, "bn")});
      x = build.Add("max_pool", {x}, {.kernel = 3, .stride = 2, .padding = 1});
      x = build.Add("dense", {build.Add("flatten", {x})}, {.channels = 10}, "fc");
      const Graph graph = std::move(build).Finish("softmax_cross_entropy", x);
      const auto want = check::SummandOf(*Make(Precision::kF32), graph, 6);
      for (const auto& [precision, far] :
           {std::pair(Precision::kTf32, 0.05), std::pair(Precision::kBf16, 0.2),
            std::pair(Precision::kFp16, 0.05)}) {
        const auto got = check::SummandOf(*Make(precision), graph, 6, LossScaleIn(precision));
        EXPECT_LT(Apart(got, want), far) << size << " px, kernel " << kernel;
        const Range conv = LayOut(graph).parameters[0];
        EXPECT_LT(Apart(std::span(got).subspan(conv.begin, conv.size),
                        std::span(want).subspan(conv.begin, conv.size)),
                  far)
            << size << " px, kernel " << kernel;
      }
    }
  }
}

// Two blocks whose last convolutions are expanding products, of so many pixels that they are
// normalised without their results (gram_rules.h). With a bias, which is 0, they are not: it is the
// same network.
constexpr int kGramSamples = 64;
// A pixel's share of a mean over 56x56 of them, times a norm's scale of 1e-3, is tiny.
constexpr float kGramLossScale = 0x1p20f;
Graph ExpandingBlocks(bool biased) {
  Builder build({56, 56, 8});
  const auto convolve = [&](ValueId x, const Attributes& attributes, const std::string& name) {
    x = build.Add("conv2d", {x}, attributes, "conv" + name);
    return build.Add("batch_norm", {x}, {}, "norm" + name);
  };
  const Attributes wide = {.channels = 256, .kernel = 3, .padding = 1, .bias = false};
  const Attributes reduce = {.channels = 64, .kernel = 1, .bias = false};
  const Attributes expand = {.channels = 256, .kernel = 1, .bias = biased};
  ValueId x = build.Add("relu", {convolve(0, wide, "stem")});
  for (const std::string block : {"one", "two"}) {
    const ValueId inner = build.Add("relu", {convolve(x, reduce, block)});
    x = build.Add("relu", {build.Add("add", {convolve(inner, expand, block + "expand"), x})});
  }
  x = build.Add("dense", {build.Add("global_average_pool", {x})}, {.channels = 10}, "fc");
  return std::move(build).Finish("softmax_cross_entropy", x);
}

// Weights are a function of their names, those of norms behind expanding products as given.
std::vector<float> StateOf(const Graph& graph, float scale, float shift) {
  const Layout layout = LayOut(graph);
  std::vector<float> state = InitialState(graph, layout, 1);
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    const ParameterSpec& spec = graph.parameters[i];
    const auto values = std::span(state).subspan(layout.parameters[i].begin, size_t(spec.size()));
    if (spec.initial == Initial::kHeFanOut) {
      const auto random = check::RandomFloats(std::hash<std::string>()(spec.name), values.size());
      const float deviation = std::sqrt(2.0f / float(spec.shape.back()));
      std::ranges::transform(random, values.begin(), [&](float x) { return deviation * x; });
    }
    if (spec.name.find("expand") == spec.name.npos || !spec.name.starts_with("norm")) continue;
    std::ranges::fill(values, spec.initial == Initial::kOne ? scale : shift);
  }
  return state;
}

// What a shard leaves, after `turns` of it; the last ones are captured. The loss is multiplied by
// `scale`, and gradients divided by it again.
std::vector<float> SummandWith(Engine& engine, const Graph& graph, const std::vector<float>& state,
                               int turns, float scale) {
  const auto program = Compile(graph, engine, kGramSamples, Mode::kTrain, size_t{1} << 40);
  Device& device = engine.device();
  const auto queue = device.NewQueue();
  const auto executable = engine.Load(program, *queue);
  const Layout& layout = program->layout;
  const Buffer weights(device, layout.state), summand(device, layout.summand), on_card(device, 1);
  flat::PutNow(*queue, state, weights);
  flat::PutNow(*queue, {&scale, 1}, on_card);
  const size_t size = size_t(kGramSamples * graph.input().size());
  const HostBuffer<float> samples(device, check::RandomFloats(3, size));
  const HostBuffer<int32_t> labels(device, check::RandomLabels(3, kGramSamples, 10));
  for (int turn = 0; turn < turns; ++turn) {
    executable->RunShard({.inputs = samples,
                          .labels = labels,
                          .count = kGramSamples,
                          .loss_scale = 1.0f / kGramSamples,
                          .gradient_scale = on_card},
                         weights, summand, false, {});
  }
  std::vector<float> got(layout.summand);
  flat::GetNow(*queue, summand, got);
  for (float& x : std::span(got).first(layout.weights)) x /= scale;
  return got;
}

class CudaNarrowModelsTest : public CudaEngineTest,
                             public testing::WithParamInterface<Precision> {};
INSTANTIATE_TEST_SUITE_P(All, CudaNarrowModelsTest,
                         testing::Values(Precision::kBf16, Precision::kFp16),
                         [](const auto& tried) { return std::string(NameOf(tried.param)); });

// Also where a norm's result is almost its shift.
TEST_P(CudaNarrowModelsTest, ProductsNormalisedWithoutTheirResultsAreAsCloseAsPlainOnes) {
  const Graph graph = ExpandingBlocks(false), biased = ExpandingBlocks(true);
  const auto f32 = Make(Precision::kF32), narrow = Make(GetParam());
  const float loss_scale = LossScaleIn(GetParam(), kGramLossScale);
  const auto has_gram = [&](const Graph& g) {
    const auto program = Compile(g, *narrow, kGramSamples, Mode::kTrain, size_t{1} << 40);
    return std::ranges::count_if(program->instructions, [](const Instruction& i) {
      return std::string_view(i.op->name).find("conv2d_batch_norm") != std::string_view::npos;
    });
  };
  ASSERT_EQ(has_gram(graph), 4);
  ASSERT_EQ(has_gram(biased), 0);
  const Layout layout = LayOut(graph), plain_layout = LayOut(biased);
  for (const auto& [scale, shift] : {std::pair(1.0f, 0.0f), std::pair(1e-3f, 1.0f)}) {
    const auto want = SummandWith(*f32, graph, StateOf(graph, scale, shift), 1, 1);
    const auto gram = SummandWith(*narrow, graph, StateOf(graph, scale, shift), 1, loss_scale);
    const auto plain = SummandWith(*narrow, biased, StateOf(biased, scale, shift), 1, loss_scale);
    const float loss = want[layout.loss()];
    EXPECT_NEAR(gram[layout.loss()], loss, 0.01 * loss);
    for (size_t i = 0; i < graph.parameters.size(); ++i) {
      const std::string& name = graph.parameters[i].name;
      const auto same = std::ranges::find(biased.parameters, name, &ParameterSpec::name);
      ASSERT_NE(same, biased.parameters.end()) << name;
      const Range r = layout.parameters[i],
                  p = plain_layout.parameters[size_t(same - biased.parameters.begin())];
      const auto wanted = std::span(want).subspan(r.begin, r.size);
      const double gram_apart = Apart(std::span(gram).subspan(r.begin, r.size), wanted);
      const double plain_apart = Apart(std::span(plain).subspan(p.begin, p.size), wanted);
      EXPECT_LE(gram_apart, 2 * plain_apart + 1e-3) << name << ", scale " << scale;
    }
  }
}

TEST_P(CudaNarrowModelsTest, ProductsNormalisedWithoutTheirResultsHaveTheSameBits) {
  const Graph graph = ExpandingBlocks(false);
  const std::vector<float> state = StateOf(graph, 1, 0);
  const float loss_scale = LossScaleIn(GetParam(), kGramLossScale);
  const auto first = SummandWith(*Make(GetParam()), graph, state, 1, loss_scale);
  EXPECT_EQ(SummandWith(*Make(GetParam()), graph, state, 3, loss_scale), first);
  const auto checked = Make(GetParam(), {.check = true, .measure = false});
  EXPECT_EQ(SummandWith(*checked, graph, state, 1, loss_scale), first);
}

// The way that was fastest is found again in the cache.
TEST_F(CudaEngineTest, MeasuredWaysAgreeAndAreKept) {
  const TemporaryDirectory folder;
  setenv("XDG_CACHE_HOME", folder.path().c_str(), 1);
  for (const Precision precision : {Precision::kF32, Precision::kBf16, Precision::kFp16}) {
    const float scale = LossScaleIn(precision);
    const auto want = check::SummandOf(*Make(precision), ResNet(), 6, scale);
    for (int turn = 0; turn < 2; ++turn) {
      const auto got = check::SummandOf(*Make(precision, {}), ResNet(), 6, scale);
      EXPECT_LT(Apart(got, want), precision == Precision::kF32 ? 0.01 : 0.5) << turn;
      EXPECT_TRUE(Exists(folder / "trireme"));
    }
  }
  unsetenv("XDG_CACHE_HOME");
}

// As bench runs them.
TEST_F(CudaEngineTest, InstructionsOneByOneMakeTheShard) {
  const auto engine = Make(Precision::kF32);
  const Graph graph = BuildModel({.name = "cnn"}, {12, 12, 1}, 10);
  const auto program = Compile(graph, *engine, 2, Mode::kTrain, size_t{1} << 40);
  const Layout& layout = program->layout;
  const auto queue = device_->NewQueue();
  const auto executable = engine->Load(program, *queue);
  const Buffer state(*device_, layout.state), whole(*device_, layout.summand),
      single(*device_, layout.summand);
  flat::PutNow(*queue, InitialState(graph, layout, 1), state);
  const HostBuffer<float> samples(*device_, check::RandomFloats(1, 2 * 144));
  const HostBuffer<int32_t> labels(*device_, std::vector<int32_t>{2, 1});
  const Batch batch{.inputs = samples, .labels = labels, .count = 2};
  executable->RunShard(batch, state, whole, false, {});
  for (size_t i = 0; i < program->instructions.size(); ++i) {
    ASSERT_TRUE(executable->RunInstruction(batch, state, single, int(i)));
  }
  std::vector<float> want(layout.summand), got(layout.summand);
  flat::GetNow(*queue, whole, want);
  flat::GetNow(*queue, single, got);
  EXPECT_EQ(got, want);
}

class CudaReplayTest : public CudaEngineTest, public testing::WithParamInterface<Precision> {};
INSTANTIATE_TEST_SUITE_P(All, CudaReplayTest, testing::Values(Precision::kF32, Precision::kFp16),
                         [](const auto& tried) { return std::string(NameOf(tried.param)); });

// What changes from shard to shard reaches a captured one, whoever looks on: bits are those of
// operations enqueued one by one.
TEST_P(CudaReplayTest, ShardsHaveTheBitsOfSingleOperations) {
  const auto single = Make(GetParam(), {.check = true, .measure = false}),
             replayed = Make(GetParam());
  for (const Graph& graph :
       {BuildModel({.name = "cnn", .dropout = 0.3}, {12, 12, 1}, 10),
        BuildModel({.name = "mlp:9-33-5", .norm = "batch", .dropout = 0.3}, {1, 1, 9}, 5),
        BuildModel({.name = "text", .layers = kSmallTransformer}, {20, 24, 3}, 5),
        ResNet()}) {  // whose gradients go to the summand beside backward
    const auto program = Compile(graph, *replayed, 3, Mode::kTrain, 1000);
    const Layout& layout = program->layout;
    const auto queue = device_->NewQueue();
    const auto want_from = single->Load(program, *queue),
               got_from = replayed->Load(program, *queue);
    const Buffer state(*device_, layout.state), want(*device_, layout.summand),
        got(*device_, layout.summand), loss_scale(*device_, 1);
    flat::PutNow(*queue, InitialState(graph, layout, 1), state);
    for (int turn = 0; turn < 12; ++turn) {
      const int count = turn % 2 ? 3 : 2;
      const size_t size = size_t(count * graph.input().size());
      const HostBuffer<float> samples(*device_, check::RandomFloats(uint64_t(turn), size));
      const HostBuffer<int32_t> labels(*device_,
                                       check::RandomLabels(uint64_t(turn), size_t(count), 5));
      const float scale = std::ldexp(1.0f, turn);
      flat::PutNow(*queue, {&scale, 1}, loss_scale);
      ShardMarks marks;
      const Batch batch{.inputs = samples,
                        .labels = labels,
                        .count = count,
                        .loss_scale = 1.0f / float(1 + turn),
                        .statistics_scale = 0.1f * float(turn),
                        .random_key = uint64_t(turn),
                        .vote = float(turn),
                        .first_position = 5 * turn,
                        .gradient_scale = loss_scale,
                        .marks = turn % 3 ? &marks : nullptr};
      int announced = 0;
      const auto ready = [&](const Bucket&, const Event&) { ++announced; };
      const bool listens = turn % 4 < 2, accumulate = turn > 0;
      want_from->RunShard(batch, state, want, accumulate, {});
      got_from->RunShard(batch, state, got, accumulate, listens ? Ready(ready) : Ready());
      std::vector<float> expected(layout.summand), found(layout.summand);
      flat::GetNow(*queue, want, expected);
      flat::GetNow(*queue, got, found);
      ASSERT_EQ(found, expected) << "turn " << turn;
      EXPECT_EQ(announced, listens ? int(program->buckets.size()) : 0);
    }
  }
}

TEST_F(CudaEngineTest, DrawsBytesAsTheProcessorDoes) {
  for (const bool check : {false, true}) {
    EXPECT_TRUE(check::CheckBytes(*Make(Precision::kF32, {.check = check, .measure = false})));
  }
}

// The message has the number.
TEST_F(CudaEngineTest, NoRoomSaysHowManySamplesFit) {
  const auto small = Plugin().make_device(0, {.memory_mb = 300});
  const auto engine = Plugin().make_engine(*small, Precision::kF32, {.measure = false});
  const auto queue = small->NewQueue();
  const auto load = [&](int capacity) {
    engine->Load(Compile(ResNet(), *engine, capacity, Mode::kTrain, size_t{1} << 40), *queue);
  };
  try {
    load(2000);
    FAIL() << "2,000 samples fit";
  } catch (const Error& error) {
    const std::string text = error.what();
    const size_t at = text.find("; about ");
    ASSERT_NE(at, text.npos) << text;
    const int fit = std::stoi(text.substr(at + 8));
    EXPECT_GT(fit, 10) << text;
    EXPECT_LT(fit, 1000) << text;
    EXPECT_NO_THROW(load(fit));
  }
}

TEST_F(CudaEngineTest, TheSameShardHasTheSameBits) {
  for (const Precision precision : kPrecisions) {
    for (const Graph& graph : {ResNet(), VitTi()}) {
      const auto first = check::SummandOf(*Make(precision), graph, 6);
      EXPECT_EQ(check::SummandOf(*Make(precision), graph, 6), first);
      EXPECT_EQ(check::SummandOf(*Make(precision, {.check = true, .measure = false}), graph, 6),
                first);
    }
  }
}

}  // namespace
}  // namespace trireme::cuda
