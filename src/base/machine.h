#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct Cache {
  int level = 0;
  std::string type;  // data, instruction, unified
  int64_t bytes = 0;
  int shared_by = 1;  // processors
};

// The machine as far as a run's speed depends on it. What is not known is empty or 0.
struct Machine {
  std::string host;
  std::string cpu_model;
  std::string architecture;   // x86_64, aarch64
  std::string kernel;         // Linux 6.1.0
  std::vector<Cache> caches;  // of the first processor, smallest level first
  int64_t memory_bytes = 0;
  int64_t memory_available_bytes = 0;         // without pushing anything out
  std::optional<int64_t> memory_limit_bytes;  // of the cgroup
};

std::string HostName();  // of this machine; empty: it is not known

// `root` is where /proc and /sys are looked for.
Machine ReadMachine(const std::filesystem::path& root = "/");

// The most memory that this process has held so far; 0: not known.
int64_t PeakMemoryBytes();

// The pieces, over the text of the kernel's files.
std::string ParseCpuModel(std::string_view cpuinfo);           // empty when it does not say
std::optional<int64_t> ParseCacheSize(std::string_view text);  // "48K", "2M"
int64_t ParseMeminfo(std::string_view meminfo, std::string_view field);  // bytes; 0: not there

}  // namespace trireme
