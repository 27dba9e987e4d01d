#include "base/cgroup.h"

#include <algorithm>
#include <vector>

#include "base/proc_file.h"
#include "base/text.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// From the process's own group up to the root: each of them limits it. In a container the path may
// be that of the host, of which only the root is there.
std::vector<fs::path> Groups(const fs::path& base, std::string_view self_cgroup,
                             std::string_view controller) {
  const std::string path = CgroupPath(self_cgroup, controller).value_or("/");
  std::vector<fs::path> groups = {base};
  fs::path group = base;
  for (const fs::path& part : fs::path(path).relative_path()) {
    if (part == "..") return {base};  // outside of this namespace
    group /= part;
    groups.push_back(group);
  }
  return groups;
}

template <class T>
void Tighten(std::optional<T>& limit, std::optional<T> other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

std::string Text(const fs::path& file) { return ReadProcFile(file).value_or(""); }

}  // namespace

CgroupLimits ReadCgroupLimits(const fs::path& root) {
  const std::string self = Text(root / "proc/self/cgroup");
  const fs::path base = root / "sys/fs/cgroup";
  CgroupLimits limits;
  for (const fs::path& group : Groups(base, self, "")) {
    Tighten(limits.cpus, ParseCpuMax(Text(group / "cpu.max")));
    Tighten(limits.memory_bytes, ParseMemoryLimit(Text(group / "memory.max")));
  }
  for (const fs::path& group : Groups(base / "cpu", self, "cpu")) {
    Tighten(limits.cpus,
            ParseCpuQuota(Text(group / "cpu.cfs_quota_us"), Text(group / "cpu.cfs_period_us")));
  }
  for (const fs::path& group : Groups(base / "memory", self, "memory")) {
    Tighten(limits.memory_bytes, ParseMemoryLimit(Text(group / "memory.limit_in_bytes")));
  }
  return limits;
}

std::optional<std::string> CgroupPath(std::string_view self_cgroup, std::string_view controller) {
  for (const std::string& line : Split(self_cgroup, '\n')) {  // hierarchy:controllers:path
    const size_t first = line.find(':');
    const size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const auto names = Split(line.substr(first + 1, second - first - 1), ',');
    if (std::find(names.begin(), names.end(), controller) != names.end()) {
      return line.substr(second + 1);
    }
  }
  return std::nullopt;
}

std::optional<double> ParseCpuMax(std::string_view cpu_max) {
  const std::string_view text = Trim(cpu_max);
  const size_t space = text.find(' ');
  if (space == text.npos) return std::nullopt;
  return ParseCpuQuota(text.substr(0, space), text.substr(space + 1));
}

std::optional<double> ParseCpuQuota(std::string_view quota_us, std::string_view period_us) {
  const auto quota = ParseNumber<int64_t>(Trim(quota_us));  // -1 or "max": no limit
  const auto period = ParseNumber<int64_t>(Trim(period_us));
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

std::optional<int64_t> ParseMemoryLimit(std::string_view limit) {
  const auto bytes = ParseNumber<int64_t>(Trim(limit));
  // Version 1 writes "no limit" as the largest multiple of a page.
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  if (!bytes || *bytes <= 0 || *bytes >= kNoLimit) return std::nullopt;
  return bytes;
}

}  // namespace trireme
