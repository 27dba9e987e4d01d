#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Names in a folder of checkpoints: what the writing and the reading side agree on.

inline constexpr char kModelFile[] = "model.safetensors";
inline constexpr char kOptimizerFile[] = "optimizer.safetensors";
inline constexpr char kStateFile[] = "state.json";
inline constexpr char kLatest[] = "latest";
inline constexpr char kBest[] = "best";
inline constexpr int64_t kStateFormat = 1;

std::string StepName(int64_t step);                          // "step-00001234"
std::optional<int64_t> StepOf(std::string_view name);        // nothing for any other name
std::vector<int64_t> StepsIn(const std::string& directory);  // ascending
// The step that kLatest or kBest names, whether it is there or not.
std::optional<int64_t> LinkIn(const std::string& directory, const char* link);

}  // namespace trireme
