#include "engine/cuda/conv.h"

#include <algorithm>
#include <array>
#include <vector>

#include "base/assert.h"
#include "base/error.h"
#include "engine/cuda/descriptor.h"
#include "engine/cuda/plain_conv.h"

namespace trireme::cuda {
namespace {

// Some plans for float32 turn whole images into another order first.
constexpr size_t kMostScratch = size_t{4} << 30;
// So much there is in any case: another number of samples may have another plan.
constexpr size_t kLeastScratch = size_t{64} << 20;
// So much a plan that is measured may want.
constexpr size_t kTunedScratch = size_t{1} << 30;
constexpr int kMostWays = 10;  // that are tried

enum Tensor : int64_t { kImages = 1, kWeights = 2, kResults = 3 };  // x or dx, w or dw, y or dy

cudnnDataType_t TypeOf(Element element) {
  return element == Element::kBFloat ? CUDNN_DATA_BFLOAT16
         : element == Element::kHalf ? CUDNN_DATA_HALF
                                     : CUDNN_DATA_FLOAT;
}

// Four extents and how far apart their values lie: channels are together.
Descriptor MakeTensor(const Libraries& l, cudnnDataType_t type, Tensor id, int64_t n, int64_t c,
                      int64_t h, int64_t w) {
  const std::array<int64_t, 4> sizes = {n, c, h, w}, strides = {h * w * c, 1, w * c, c};
  Descriptor tensor(l, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, sizes)
      .Set(CUDNN_ATTR_TENSOR_STRIDES, strides)
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, int64_t{id})
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, int64_t{16})
      .Finish("a tensor of cuDNN");
  return tensor;
}

Descriptor MakeWindow(const Libraries& l, const Window& w) {
  const std::array<int64_t, 2> ones = {1, 1}, strides = {w.stride, w.stride},
                               padding = {w.padding, w.padding};
  Descriptor window(l, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.Set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .Set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, int64_t{2})
      .Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, ones)
      .Set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides)
      .Set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, padding)
      .Set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, padding)
      .Finish("a convolution of cuDNN");
  return window;
}

// The names of cuDNN's three operations and their attributes.
struct Names {
  cudnnBackendDescriptorType_t operation;
  cudnnBackendAttributeName_t window, images, weights, results, alpha, beta;
};
Names NamesOf(ConvKind kind) {
  switch (kind) {
    case ConvKind::kForward:
      break;
    case ConvKind::kGradInput:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvKind::kGradWeights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
}

// A graph of one operation, and what it refers to.
struct ConvGraph {
  Descriptor images, weights, results, window, operation, graph;
};
ConvGraph MakeGraph(const Libraries& l, cudnnHandle_t handle, cudnnDataType_t type,
                    const ConvShape& s) {
  const Window& w = s.window;
  const Names names = NamesOf(s.kind);
  ConvGraph g;
  g.images = MakeTensor(l, type, kImages, s.samples, w.channels, w.height, w.width);
  g.weights = MakeTensor(l, type, kWeights, s.out, w.channels, w.kernel, w.kernel);
  g.results = MakeTensor(l, type, kResults, s.samples, s.out, w.out_height, w.out_width);
  g.window = MakeWindow(l, w);
  g.operation = Descriptor(l, names.operation);
  g.operation.Set(names.window, g.window)
      .Set(names.images, g.images)
      .Set(names.weights, g.weights)
      .Set(names.results, g.results)
      .Set(names.alpha, CUDNN_TYPE_FLOAT, 1.0f)
      .Set(names.beta, CUDNN_TYPE_FLOAT, 0.0f)
      .Finish("an operation of cuDNN");
  g.graph = Descriptor(l, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  g.graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
      .Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, g.operation)
      .Finish("a graph of cuDNN");
  return g;
}

// What the heuristic advises, best first; the count that it announces is an upper bound.
std::vector<Descriptor> Advice(const Libraries& l, const Descriptor& graph,
                               cudnnBackendHeurMode_t mode) {
  Descriptor heuristic(l, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristic.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph)
      .Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
  if (heuristic.TryFinish() != CUDNN_STATUS_SUCCESS) return {};
  int64_t most = 0;
  if (l.cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &most,
                                 nullptr) != CUDNN_STATUS_SUCCESS ||
      most <= 0) {
    return {};
  }
  std::vector<Descriptor> advice;
  std::vector<cudnnBackendDescriptor_t> places;
  for (int64_t i = 0; i < most; ++i) {
    advice.emplace_back(l, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
    places.push_back(advice.back().get());
  }
  int64_t filled = 0;
  if (l.cudnnBackendGetAttribute(heuristic.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, most, &filled,
                                 places.data()) != CUDNN_STATUS_SUCCESS) {
    return {};
  }
  advice.resize(size_t(std::clamp<int64_t>(filled, 0, most)));
  return advice;
}

// Whether its operands keep the wanted precision and, if `ordered`, its sums have one order.
bool IsAllowed(const Libraries& l, const Descriptor& config, Precision precision, bool ordered) {
  const Descriptor engine(l, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t place = engine.get();
  int64_t count = 0;
  if (l.cudnnBackendGetAttribute(config.get(), CUDNN_ATTR_ENGINECFG_ENGINE,
                                 CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count,
                                 &place) != CUDNN_STATUS_SUCCESS) {
    return false;
  }
  std::array<cudnnBackendNumericalNote_t, 64> notes = {};
  count = 0;
  if (l.cudnnBackendGetAttribute(place, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count,
                                 notes.data()) != CUDNN_STATUS_SUCCESS) {
    return false;
  }
  return std::none_of(notes.begin(),
                      notes.begin() + std::clamp<int64_t>(count, 0, int64_t(notes.size())),
                      [&](cudnnBackendNumericalNote_t note) {
                        switch (note) {
                          case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
                            return precision == Precision::kF32;
                          case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC:
                            return ordered;
                          case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
                          case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION:
                          case CUDNN_NUMERICAL_NOTE_FFT:
                          case CUDNN_NUMERICAL_NOTE_WINOGRAD:
                            return true;
                          default:
                            return false;
                        }
                      });
}

std::string KeyOf(const ConvShape& s, Precision precision) {
  const Window& w = s.window;
  return fmt::format("conv {} {} {} {} {} {} {} {} {} {} {} {}", NameOf(precision), int(s.kind),
                     s.samples, w.height, w.width, w.channels, w.out_height, w.out_width, s.out,
                     w.kernel, w.stride, w.padding);
}

constexpr size_t Aligned(size_t bytes) { return (bytes + 255) / 256 * 256; }

std::string Explain(const ConvShape& s) {
  const Window& w = s.window;
  return fmt::format("{} of {} samples {}x{}x{} to {}x{}x{}, kernel {}, stride {}, padding {}",
                     s.kind == ConvKind::kForward     ? "convolution"
                     : s.kind == ConvKind::kGradInput ? "its gradient by the input"
                                                      : "its gradient by the weights",
                     s.samples, w.height, w.width, w.channels, w.out_height, w.out_width, s.out,
                     w.kernel, w.stride, w.padding);
}

}  // namespace

struct Conv::Plan {
  ConvGraph graph;
  std::vector<Descriptor> configs;  // as advised, best first
  std::vector<bool> ordered;        // of each: its sums have one order
  Descriptor plan;                  // of one of them
  int way = -1;                     // of which
  size_t scratch = 0;
  bool plain = false;  // there is none
  int uses = 0;        // how often it was asked for
};

Conv::Conv(std::shared_ptr<const Libraries> libraries, Precision precision, const Choices* choices,
           cudaStream_t stream, bool only_plain)
    : libraries_(std::move(libraries)),
      precision_(precision),
      choices_(choices),
      only_plain_(only_plain) {
  libraries_->Check(libraries_->cudnnCreate(&handle_), "cudnnCreate");
  Use(stream);
}

void Conv::Use(cudaStream_t stream) {
  libraries_->Check(libraries_->cudnnSetStream(handle_, stream), "cudnnSetStream");
  stream_ = stream;
}

Conv::~Conv() {
  plans_.clear();
  libraries_->cudnnDestroy(handle_);
}

bool Conv::Build(Plan& plan, int way, size_t most_scratch) const {
  if (plan.way == way) return plan.scratch <= most_scratch;
  const Libraries& l = *libraries_;
  Descriptor built(l, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  built.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle_)
      .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, plan.configs[size_t(way)]);
  if (built.TryFinish() != CUDNN_STATUS_SUCCESS) return false;  // not for these sizes or this card
  int64_t scratch = 0, count = 0;
  l.Check(l.cudnnBackendGetAttribute(built.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                     CUDNN_TYPE_INT64, 1, &count, &scratch),
          "cudnnBackendGetAttribute");
  if (scratch < 0 || size_t(scratch) > most_scratch) return false;
  plan.plan = std::move(built);
  plan.way = way;
  plan.scratch = size_t(scratch);
  return true;
}

std::unique_ptr<Conv::Plan> Conv::Ask(const ConvShape& shape, size_t most_scratch) const {
  const Libraries& l = *libraries_;
  auto plan = std::make_unique<Plan>();
  plan->graph = MakeGraph(l, handle_, TypeOf(OperandsIn(precision_)), shape);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& config : Advice(l, plan->graph.graph, mode)) {
      const bool ordered = IsAllowed(l, config, precision_, /*ordered=*/true);
      if (!ordered && !(choices_ && IsAllowed(l, config, precision_, /*ordered=*/false))) continue;
      plan->configs.push_back(std::move(config));
      plan->ordered.push_back(ordered);
    }
  }
  const auto chosen = choices_ ? choices_->Find(KeyOf(shape, precision_)) : std::nullopt;
  const int ways = int(plan->configs.size());
  if (chosen && *chosen < ways && Build(*plan, *chosen, most_scratch)) return plan;
  for (const bool ordered : {true, false}) {  // what was not measured has the same bits every time
    for (int way = 0; way < ways; ++way) {
      if (plan->ordered[size_t(way)] != ordered) continue;
      if (Build(*plan, way, most_scratch)) return plan;
    }
  }
  return nullptr;
}

Conv::Plan& Conv::PlanFor(const ConvShape& shape, size_t most_scratch) {
  std::unique_ptr<Plan>& kept = plans_[shape];
  if (kept) return *kept;
  if (!only_plain_) kept = Ask(shape, most_scratch);
  if (!kept) {
    kept = std::make_unique<Plan>();
    kept->plain = true;
    ++plain_;
  }
  return *kept;
}

size_t Conv::ScratchBytes(const ConvShape& shape) {
  try {
    Plan& plan = PlanFor(shape, kMostScratch);
    ++plan.uses;
    return std::max(kLeastScratch, plan.scratch);
  } catch (Error& error) {
    error.Add("{}", Explain(shape));
    throw;
  }
}

std::vector<Tunable> Conv::Tunables() {
  std::vector<Tunable> tunables;
  for (const auto& [key_shape, kept] : plans_) {
    Plan* const plan = kept.get();
    const ConvShape shape = key_shape;
    const std::string key = KeyOf(shape, precision_);
    if (plan->plain || plan->uses == 0 || !choices_ || choices_->Find(key)) continue;
    const Window& w = shape.window;
    const double samples = shape.samples, taps = double(w.kernel) * w.kernel * w.channels;
    const double places = samples * w.out_height * w.out_width;
    const size_t number = size_t(BytesOf(OperandsIn(precision_)));
    const size_t images = Aligned(size_t(samples) * size_t(w.height) * size_t(w.width) *
                                  size_t(w.channels) * number),
                 weights = Aligned(size_t(taps) * size_t(shape.out) * number),
                 results = Aligned(size_t(places) * size_t(shape.out) * number);
    const auto run = [=, this](int way, std::byte* memory) {
      if (!Build(*plan, way, kTunedScratch)) return false;
      void* const x = memory;
      void* const weight = memory + images;
      void* const y = memory + images + weights;
      std::byte* const scratch = memory + images + weights + results;
      switch (shape.kind) {
        case ConvKind::kForward:
          Execute(*plan, shape, {x, weight, y}, scratch);
          break;
        case ConvKind::kGradInput:
          Execute(*plan, shape, {y, weight, x}, scratch);
          break;
        case ConvKind::kGradWeights:
          Execute(*plan, shape, {x, y, weight}, scratch);
          break;
      }
      return true;
    };
    tunables.push_back({.key = key,
                        .flops = 2 * places * taps * shape.out,
                        .bytes = double(images + weights + results),
                        .uses = plan->uses,
                        .ways = std::min(kMostWays, int(plan->configs.size())),
                        .memory = images + weights + results + kTunedScratch,
                        .run = run,
                        .take = [=, this](int way) { Build(*plan, way, kTunedScratch); }});
  }
  return tunables;
}

void Conv::Execute(const Plan& plan, const ConvShape& shape, void* const (&data)[3],
                   std::byte* scratch) const {
  const Libraries& l = *libraries_;
  std::array<int64_t, 3> ids = {kImages, kWeights, kResults};
  if (shape.kind == ConvKind::kGradInput) ids = {kResults, kWeights, kImages};
  if (shape.kind == ConvKind::kGradWeights) ids = {kImages, kResults, kWeights};
  Descriptor pack(l, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids)
      .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::span<void* const>(data))
      .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, static_cast<void*>(scratch))
      .Finish("the pointers of cuDNN");
  l.Check(l.cudnnBackendExecute(handle_, plan.plan.get(), pack.get()), "cudnnBackendExecute");
}

void Conv::Run(const ConvShape& shape, const void* a, const void* b, void* result,
               std::byte* scratch, size_t scratch_bytes) {
  try {
    const Plan& plan = PlanFor(shape, scratch_bytes);
    TRIREME_ASSERT(plan.scratch <= scratch_bytes);
    void* const data[3] = {const_cast<void*>(a), const_cast<void*>(b), result};
    if (!plan.plain) return Execute(plan, shape, data, scratch);
    const Element element = OperandsIn(precision_);
    const auto launch = shape.kind == ConvKind::kForward     ? LaunchPlainConv
                        : shape.kind == ConvKind::kGradInput ? LaunchPlainConvGradInput
                                                             : LaunchPlainConvGradWeights;
    launch(stream_, shape.window, shape.out, size_t(shape.samples), {data[0], element},
           {data[1], element}, {data[2], element});
  } catch (Error& error) {
    error.Add("{}", Explain(shape));
    throw;
  }
}

}  // namespace trireme::cuda
