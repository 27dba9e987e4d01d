#pragma once
#include <string_view>

namespace trireme {

std::string_view Version();  // of this program: 0.1.0

}  // namespace trireme
