#pragma once
#include <string_view>
#include <vector>

#include "graph/op.h"

// What operations are tried with: who adds one edits tries.cc, if anything. An operation that is
// not named there has one input, keeps its shape and needs no attributes.

namespace trireme::check {

// Inputs and attributes of a forward operation.
struct Setting {
  std::vector<Shape> inputs;
  Attributes attributes;
};

// For engines against ref: odd sizes, strides, paddings, and those that a kernel may treat apart.
// A fused operation that is not named has those of its first part.
std::vector<Setting> SettingsFor(const OpDef& op);

// For gradient rules against finite differences.
std::vector<Attributes> GradientTriesFor(std::string_view op);

}  // namespace trireme::check
