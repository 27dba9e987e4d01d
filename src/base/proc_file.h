#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace trireme {

// The beginning (64 KiB) of a file in /proc or /sys, where sizes are not known before reading;
// nothing when it cannot be read.
std::optional<std::string> ReadProcFile(const std::filesystem::path& path);

}  // namespace trireme
