#include "engine/check/tries.h"

#include <tuple>
#include <utility>

namespace trireme::check {
namespace {

std::vector<Setting> Windows(int channels) {
  return {{{{5, 7, 3}}, {.channels = channels, .kernel = 3, .stride = 1, .padding = 1}},
          {{{9, 6, 5}}, {.channels = channels, .kernel = 3, .stride = 2, .padding = 1}},
          {{{11, 11, 3}}, {.channels = channels, .kernel = 7, .stride = 2, .padding = 3}},
          {{{6, 4, 2}}, {.channels = channels, .kernel = 2, .stride = 2}},
          {{{4, 4, 1}}, {.channels = channels, .kernel = 4, .stride = 3}},
          {{{7, 8, 17}}, {.channels = channels, .kernel = 3, .stride = 3, .padding = 2}},
          {{{8, 12, 16}}, {.channels = channels, .kernel = 3, .stride = 2, .padding = 1}}};
}

std::vector<Setting> Convolutions() {
  std::vector<Setting> all = Windows(7);
  all.push_back({{{6, 5, 33}}, {.channels = 19, .kernel = 1}});
  all.push_back({{{8, 8, 64}}, {.channels = 64, .kernel = 3, .stride = 1, .padding = 1}});
  all.push_back({{{5, 5, 16}}, {.channels = 32, .kernel = 1, .stride = 2}});
  all.push_back({{{1, 1, 40}}, {.channels = 24, .kernel = 1}});
  all.push_back({{{1, 1, 1}}, {.channels = 1, .kernel = 3, .padding = 1}});
  all.push_back({{{9, 10, 20}}, {.channels = 35, .kernel = 3}});
  all.push_back({{{6, 11, 37}}, {.channels = 16, .kernel = 3, .padding = 2}});
  all.push_back({{{2, 3, 130}}, {.channels = 131, .kernel = 3, .padding = 1}});
  // So many weights that the sums of their gradients do not stay in a cache.
  all.push_back({{{2, 2, 240}}, {.channels = 256, .kernel = 3, .padding = 1}});
  // Whole vectors of channels.
  all.push_back({{{6, 5, 32}}, {.channels = 64, .kernel = 1}});
  all.push_back({{{7, 6, 96}}, {.channels = 32, .kernel = 1, .stride = 2}});
  all.push_back({{{9, 7, 32}}, {.channels = 64, .kernel = 3, .stride = 2, .padding = 1}});
  for (size_t i = 0; i < all.size(); i += 2) all[i].attributes.bias = false;
  return all;
}

// Without a bias, of one pixel, with more channels behind than before, and with more pixels than
// channels: a covariance of fewer is singular.
std::vector<Setting> ExpandingConvolutions() {
  std::vector<Setting> all;
  for (const auto& [shape, channels] : std::vector<std::pair<Shape, int>>{
           {{9, 11, 5}, 12}, {{12, 10, 16}, 64}, {{12, 11, 64}, 128}, {{7, 8, 24}, 56}}) {
    all.push_back({{shape}, {.channels = channels, .kernel = 1, .bias = false}});
  }
  return all;
}

std::vector<Setting> DenseLayers() {
  std::vector<Setting> all;
  for (const auto& [in, out] : std::vector<std::pair<int, int>>{
           {1, 1}, {4, 30}, {30, 3}, {17, 16}, {64, 33}, {129, 100}, {784, 10}}) {
    all.push_back({{{1, 1, in}}, {.channels = out, .bias = in != 17}});
  }
  for (const Shape tokens : {Shape{5, 1, 7}, Shape{4, 4, 48}, Shape{67, 1, 100}}) {
    all.push_back({{tokens}, {.channels = 33, .bias = tokens.channels != 7, .tokens = true}});
  }
  return all;
}

std::vector<Setting> Elementwise(size_t num_inputs, const Attributes& attributes = {}) {
  std::vector<Setting> all;
  for (const Shape shape :
       {Shape{1, 1, 1}, Shape{1, 1, 10}, Shape{3, 5, 7}, Shape{4, 4, 64}, Shape{2, 3, 100}}) {
    all.push_back({std::vector<Shape>(num_inputs, shape), attributes});
  }
  return all;
}

// Fewer and more tokens than a block of queries or keys has, and not a multiple of it.
std::vector<Setting> Attentions() {
  std::vector<Setting> all;
  for (const auto& [tokens, heads, channels] :
       std::vector<std::tuple<Shape, int, int>>{{{1, 1}, 1, 1},
                                                {{3, 3}, 2, 5},
                                                {{17, 1}, 3, 16},
                                                {{64, 1}, 1, 64},
                                                {{10, 14}, 2, 33},
                                                {{197, 1}, 1, 8}}) {
    const Shape qkv{tokens.height, tokens.width, 3 * heads * channels};
    all.push_back({{qkv}, {.heads = heads}});
  }
  return all;
}

std::vector<Setting> Losses(const Attributes& attributes = {}) {
  std::vector<Setting> all;
  for (const int classes : {2, 3, 10, 17, 100}) all.push_back({{{1, 1, classes}}, attributes});
  return all;
}

std::vector<Setting> Join(std::vector<Setting> a, const std::vector<Setting>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

std::vector<Setting> SettingsFor(const OpDef& def) {
  const std::string_view op = def.name;
  if (op == "dense") return DenseLayers();
  if (op == "conv2d") return Convolutions();
  if (op == "conv2d_batch_norm") return ExpandingConvolutions();
  if (op == "add_relu_conv2d_batch_norm_grad") {
    std::vector<Setting> all;
    for (const Shape shape : {Shape{9, 7, 12}, Shape{8, 8, 64}, Shape{10, 12, 128}}) {
      all.push_back({{shape, shape}, {}});
    }
    return all;
  }
  if (op == "max_pool" || op == "average_pool") return Windows(0);
  if (op == "pad_channels") {
    return {{{{5, 7, 3}}, {.channels = 8, .stride = 2}},
            {{{6, 4, 16}}, {.channels = 32, .stride = 2}},
            {{{4, 5, 5}}, {.channels = 6, .stride = 1}},
            {{{7, 8, 9}}, {.channels = 9, .stride = 3}},
            {{{1, 1, 4}}, {.channels = 10, .stride = 2}}};
  }
  if (op == "add") return Elementwise(2);
  if (op == "layer_norm") {
    std::vector<Setting> all = Join(Elementwise(1), Elementwise(1, {.affine = false}));
    for (const Attributes& a : {Attributes{.tokens = true}, {.affine = false, .tokens = true}}) {
      all = Join(std::move(all), Elementwise(1, a));
    }
    all.push_back({{{70, 1, 40}}, {.tokens = true}});  // summed in several chunks
    return all;
  }
  if (op == "dropout") return Elementwise(1, {.rate = 0.3f, .layer = 2});
  if (op == "attention") return Attentions();
  if (op == "stochastic_depth") return Elementwise(1, {.rate = 0.4f, .layer = 3});
  if (op == "softmax_cross_entropy") return Join(Losses(), Losses({.smoothing = 0.1f}));
  if (op == "squared_error" || op == "absolute_error") {
    return Join(Losses(), {{{{1, 1, 1}}, {}}});  // a number
  }
  if (op == "tally") {
    std::vector<Setting> all = Join(Losses(), {{{{1, 1, 1}}, {}}});
    for (Setting& setting : all) setting.inputs.push_back({});
    return all;
  }
  if (def.parts.size() > 0) return SettingsFor(FindOp(*def.parts.begin()));
  return Elementwise(1);
}

std::vector<Attributes> GradientTriesFor(std::string_view op) {
  if (op == "dense") {
    return {{.channels = 5},
            {.channels = 5, .bias = false},
            {.channels = 5, .tokens = true},
            {.channels = 5, .bias = false, .tokens = true}};
  }
  if (op == "conv2d") {
    return {{.channels = 5, .kernel = 3, .stride = 1, .padding = 1},
            {.channels = 4, .kernel = 3, .stride = 2, .padding = 1, .bias = false},
            {.channels = 2, .kernel = 4, .stride = 3, .padding = 0}};
  }
  if (op == "layer_norm") return {{}, {.affine = false}, {.tokens = true}};
  if (op == "max_pool") {
    return {{.kernel = 3, .stride = 2, .padding = 1}, {.kernel = 2, .stride = 2}};
  }
  if (op == "average_pool") {
    return {{.kernel = 3, .stride = 2, .padding = 1}, {.kernel = 2, .stride = 1}};
  }
  if (op == "pad_channels") return {{.channels = 40, .stride = 2}, {.channels = 41}};
  if (op == "dropout" || op == "stochastic_depth") return {{.rate = 0.4f}};
  if (op == "attention") return {{.heads = 1}, {.heads = 2}};
  return {Attributes{}};
}

}  // namespace trireme::check
