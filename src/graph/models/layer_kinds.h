#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace trireme {

// What a text may say of a layer: one attribute of its operation.
struct LayerArgument {
  const char* key;
  double least, most;
  int Attributes::*count = nullptr;  // one of these three
  float Attributes::*number = nullptr;
  bool Attributes::*flag = nullptr;
  bool required = false;
};

// A layer that a text may name: a row of one list, with its operation's name.
struct LayerKind {
  std::string op;
  std::vector<LayerArgument> arguments = {};  // those without a key come in this order
  bool strides_by_kernel = false;             // where no stride is given
};

std::span<const LayerKind> LayerKinds();
const LayerKind* FindLayerKind(std::string_view op);  // null: no such layer

}  // namespace trireme
