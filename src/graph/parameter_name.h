#pragma once
#include <string>
#include <string_view>

namespace trireme {

// Of a layer's parameter. A layer that ends with _ continues with the name itself: PyTorch has
// in_proj_weight. A parameter without a name has the layer's.
std::string FullName(std::string_view layer, const std::string& name);

}  // namespace trireme
