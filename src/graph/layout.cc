#include "graph/layout.h"

#include <algorithm>
#include <cmath>

#include "base/assert.h"
#include "base/random.h"

namespace trireme {
namespace {

size_t RoundUp(size_t floats) {
  return (floats + Layout::kAlignment - 1) / Layout::kAlignment * Layout::kAlignment;
}

Range Append(const ParameterSpec& spec, size_t& end) {
  const Range range{.begin = end, .size = size_t(spec.size())};
  end = RoundUp(range.end());
  return range;
}

// Calls visit(memory index, file index) for every value of a parameter.
template <class Visit>
void ForEachPlace(const ParameterSpec& spec, Visit visit) {
  const int64_t size = spec.size();
  if (spec.form == FileForm::kPlain) {
    for (int64_t i = 0; i < size; ++i) visit(i, i);
    return;
  }
  // Both other forms are [places][channels][out] in memory and [out][channels][places] in files:
  // a kernel's places in its window, a dense layer's places in the image that was flattened.
  int64_t places, channels;
  if (spec.form == FileForm::kConv2d) {
    TRIREME_ASSERT(spec.shape.size() == 4);
    places = spec.shape[0] * spec.shape[1], channels = spec.shape[2];
  } else {
    TRIREME_ASSERT(spec.shape.size() == 2 && spec.flattened.size() == spec.shape[0]);
    places = int64_t{spec.flattened.height} * spec.flattened.width;
    channels = spec.flattened.channels;
  }
  const int64_t outputs = spec.shape.back();
  for (int64_t p = 0; p < places; ++p) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t o = 0; o < outputs; ++o) {
        visit((p * channels + c) * outputs + o, (o * channels + c) * places + p);
      }
    }
  }
}

void Fill(const ParameterSpec& spec, uint64_t key, std::span<float> values) {
  const Random random(key);
  switch (spec.initial) {
    case Initial::kZero:
      std::ranges::fill(values, 0.0f);
      return;
    case Initial::kOne:
      std::ranges::fill(values, 1.0f);
      return;
    case Initial::kHeFanOut: {
      // Each input reaches every output of every place in the window: all extents but the inputs'.
      const int64_t fan_out = spec.size() / spec.shape[spec.shape.size() - 2];
      const double deviation = std::sqrt(2.0 / double(fan_out));
      for (size_t i = 0; i < values.size(); ++i) values[i] = float(deviation * random.Normal(i));
      return;
    }
    case Initial::kUniformFanIn: {
      const double bound = 1.0 / std::sqrt(double(spec.fan_in));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = float(bound * (2 * random.Uniform(i) - 1));
      }
      return;
    }
    case Initial::kXavierUniform: {
      const double bound = std::sqrt(6.0 / double(spec.shape[0] + spec.shape[1]));
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] = float(bound * (2 * random.Uniform(i) - 1));
      }
      return;
    }
    case Initial::kEmbedding:
      for (size_t i = 0; i < values.size(); ++i) values[i] = float(0.02 * random.Normal(i));
      return;
  }
}

}  // namespace

Layout LayOut(const Graph& graph) {
  Layout layout;
  layout.parameters.resize(graph.parameters.size());
  layout.statistics.resize(graph.statistics.size());
  for (const ParameterSpec& spec : graph.parameters) layout.decays.push_back(spec.decays);

  size_t end = 0, placed = 0;
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    if (node->backward || node->frozen) continue;
    for (int i : node->parameters) layout.parameters[i] = Append(graph.parameters[i], end);
    placed += node->parameters.size();
    // Not between a layer's parameters: they are final at one moment, that of one bucket.
    if (!node->parameters.empty()) layout.cuts.push_back(end);
  }
  layout.weights = end;
  std::vector<bool> frozen(graph.statistics.size());
  for (const Node& node : graph.nodes) {
    for (int i : node.statistics) frozen[size_t(i)] = node.frozen;
  }
  for (size_t i = 0; i < graph.statistics.size(); ++i) {
    if (!frozen[i]) layout.statistics[i] = Append(graph.statistics[i], end);
  }
  layout.summand = end + Layout::kStepMetrics;

  const size_t trained = end;
  for (const Node& node : graph.nodes) {
    if (!node.frozen) continue;
    for (int i : node.parameters) layout.parameters[i] = Append(graph.parameters[i], end);
    for (int i : node.statistics) layout.statistics[i] = Append(graph.statistics[i], end);
    placed += node.parameters.size();
  }
  TRIREME_ASSERT(placed == graph.parameters.size());  // each belongs to one forward node
  layout.state = end;
  layout.frozen = end - trained;
  return layout;
}

std::vector<Bucket> CutBuckets(const Layout& layout, size_t floats) {
  std::vector<Bucket> buckets;
  size_t begin = 0;
  for (const size_t cut : layout.cuts) {
    if (cut - begin < floats && cut != layout.weights) continue;
    buckets.push_back({.index = int(buckets.size()), .range = {begin, cut - begin}});
    begin = cut;
  }
  buckets.push_back({.index = int(buckets.size()), .range = layout.tail()});
  return buckets;
}

std::vector<float> InitialState(const Graph& graph, const Layout& layout, uint64_t seed) {
  std::vector<float> state(layout.state);
  auto fill = [&](const ParameterSpec& spec, const Range& range, size_t index) {
    Fill(spec, HashKey(seed, index), std::span(state).subspan(range.begin, range.size));
  };
  for (size_t i = 0; i < graph.parameters.size(); ++i) {
    fill(graph.parameters[i], layout.parameters[i], i);
  }
  for (size_t i = 0; i < graph.statistics.size(); ++i) {
    fill(graph.statistics[i], layout.statistics[i], graph.parameters.size() + i);
  }
  return state;
}

void ToFile(const ParameterSpec& spec, std::span<const float> memory, std::span<float> file) {
  TRIREME_ASSERT(int64_t(memory.size()) == spec.size() && memory.size() == file.size());
  ForEachPlace(spec, [&](int64_t m, int64_t f) { file[f] = memory[m]; });
}

void FromFile(const ParameterSpec& spec, std::span<const float> file, std::span<float> memory) {
  TRIREME_ASSERT(int64_t(memory.size()) == spec.size() && memory.size() == file.size());
  ForEachPlace(spec, [&](int64_t m, int64_t f) { memory[m] = file[f]; });
}

std::vector<int64_t> FileShape(const ParameterSpec& spec) {
  const auto& s = spec.shape;
  switch (spec.form) {
    case FileForm::kPlain:
      return s;
    case FileForm::kDense:
      return {s[1], s[0]};
    case FileForm::kConv2d:
      return {s[3], s[2], s[0], s[1]};
  }
  return s;
}

}  // namespace trireme
