#pragma once
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "study/claims.h"

namespace trireme {

// The published experiments, one file for each document; the list of them is in replay.cc.
Replay BspMnist(const ReplaySize& size);
Replay IrisMpi(const ReplaySize& size);
Replay ScenesMpi(const ReplaySize& size);
Replay Resnet50Batch(const ReplaySize& size);
Replay DdpSweep(const ReplaySize& size);

inline std::string Set(std::string_view key, std::string_view value) {
  return fmt::format("{}={}", key, value);
}

}  // namespace trireme
