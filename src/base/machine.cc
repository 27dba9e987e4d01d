#include "base/machine.h"

#include <fmt/core.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "base/cgroup.h"
#include "base/cores.h"
#include "base/proc_file.h"
#include "base/text.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// Arm's processors have numbers instead of a "model name" line.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kArmParts = {{
    {"0x41 0xd03", "Arm Cortex-A53"},
    {"0x41 0xd08", "Arm Cortex-A72"},
    {"0x41 0xd0b", "Arm Cortex-A76"},
    {"0x41 0xd0c", "Arm Neoverse-N1"},
    {"0x41 0xd40", "Arm Neoverse-V1"},
    {"0x41 0xd49", "Arm Neoverse-N2"},
    {"0x41 0xd4f", "Arm Neoverse-V2"},
    {"0x46 0x001", "Fujitsu A64FX"},
    {"0xc0 0xac3", "Ampere-1"},
}};

// The value behind "field   : value".
std::string Field(std::string_view text, std::string_view field) {
  for (const std::string& line : Split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon != line.npos && Trim(std::string_view(line).substr(0, colon)) == field) {
      return std::string(Trim(std::string_view(line).substr(colon + 1)));
    }
  }
  return "";
}

std::string Lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c;
  return text;
}

std::vector<Cache> ReadCaches(const fs::path& folder) {
  std::vector<Cache> caches;
  const auto text = [](const fs::path& file) {
    return std::string(Trim(ReadProcFile(file).value_or("")));
  };
  for (int i = 0; i < 16; ++i) {
    const fs::path index = folder / fmt::format("index{}", i);
    const auto level = ParseNumber<int>(text(index / "level"));
    const auto bytes = ParseCacheSize(text(index / "size"));
    if (!level || !bytes) continue;
    const auto shared = ParseCpuList(text(index / "shared_cpu_list"));
    caches.push_back({*level, Lower(text(index / "type")), *bytes,
                      shared && !shared->empty() ? static_cast<int>(shared->size()) : 1});
  }
  std::stable_sort(caches.begin(), caches.end(),
                   [](const Cache& a, const Cache& b) { return a.level < b.level; });
  return caches;
}

}  // namespace

std::string HostName() {
  utsname name{};
  return uname(&name) == 0 ? name.nodename : "";
}

Machine ReadMachine(const fs::path& root) {
  Machine machine;
  machine.host = HostName();
  utsname name{};
  if (uname(&name) == 0) {
    machine.architecture = name.machine;
    machine.kernel = fmt::format("{} {}", name.sysname, name.release);
  }
  machine.cpu_model = ParseCpuModel(ReadProcFile(root / "proc/cpuinfo").value_or(""));
  machine.caches = ReadCaches(root / "sys/devices/system/cpu/cpu0/cache");
  const std::string meminfo = ReadProcFile(root / "proc/meminfo").value_or("");
  machine.memory_bytes = ParseMeminfo(meminfo, "MemTotal");
  machine.memory_available_bytes = ParseMeminfo(meminfo, "MemAvailable");
  machine.memory_limit_bytes = ReadCgroupLimits(root).memory_bytes;
  return machine;
}

std::string ParseCpuModel(std::string_view cpuinfo) {
  const std::string model = Field(cpuinfo, "model name");
  if (!model.empty()) return model;
  const std::string implementer = Field(cpuinfo, "CPU implementer");
  const std::string part = Field(cpuinfo, "CPU part");
  if (implementer.empty() || part.empty()) return "";
  const std::string both = implementer + " " + part;
  for (const auto& [numbers, known] : kArmParts) {
    if (numbers == both) return std::string(known);
  }
  return fmt::format("Arm implementer {} part {}", implementer, part);
}

std::optional<int64_t> ParseCacheSize(std::string_view text) {
  text = Trim(text);
  int64_t unit = 1;
  if (text.ends_with('K')) unit = 1 << 10;
  if (text.ends_with('M')) unit = 1 << 20;
  if (unit != 1) text.remove_suffix(1);
  const auto number = ParseNumber<int64_t>(text);
  if (!number || *number < 0 || *number > std::numeric_limits<int64_t>::max() / unit) {
    return std::nullopt;
  }
  return *number * unit;
}

int64_t ParseMeminfo(std::string_view meminfo, std::string_view field) {
  std::string value = Field(meminfo, field);  // 16315432 kB
  if (!value.ends_with(" kB")) return 0;
  value.resize(value.size() - 3);
  const auto kib = ParseNumber<int64_t>(value);
  return kib && *kib > 0 && *kib < (int64_t{1} << 50) ? *kib * 1024 : 0;
}

int64_t PeakMemoryBytes() {
  // Not ru_maxrss: that is at least what the program held that started this one.
  return ParseMeminfo(ReadProcFile("/proc/self/status").value_or(""), "VmHWM");
}

}  // namespace trireme
