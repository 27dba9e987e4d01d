#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

// What the control groups of this process (version 1, 2 or both) allow; nothing: no limit.
struct CgroupLimits {
  std::optional<double> cpus;           // quota / period of the tightest group
  std::optional<int64_t> memory_bytes;  // of the tightest group
};

// `root` is where /proc and /sys are looked for.
CgroupLimits ReadCgroupLimits(const std::filesystem::path& root = "/");

// The pieces, over the text of the kernel's files; nothing for "no limit" and for garbage.
//
// The group of /proc/self/cgroup for a controller of version 1 ("cpu"), or for version 2 ("").
std::optional<std::string> CgroupPath(std::string_view self_cgroup, std::string_view controller);
std::optional<double> ParseCpuMax(std::string_view cpu_max);  // "150000 100000": 1.5
std::optional<double> ParseCpuQuota(std::string_view quota_us, std::string_view period_us);
std::optional<int64_t> ParseMemoryLimit(std::string_view limit);

}  // namespace trireme
