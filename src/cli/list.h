#pragma once
#include <string>
#include <vector>

namespace trireme {

std::vector<std::string> ListTopics();  // all that `trireme list` takes

}  // namespace trireme
