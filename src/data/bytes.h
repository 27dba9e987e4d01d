#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace trireme {

// The whole of a file, unpacked where its content (not its name) is gzip. Refuses folders, and
// files that would fill more than half of the machine's memory; every message names the file.
std::vector<uint8_t> ReadBytes(const std::string& path);

// Of a machine with so many pages; one that does not say it, such as a root without /proc (-1),
// sets no limit.
int64_t HalfOfMemory(int64_t pages, int64_t page_bytes);

// Unpacks gzip data (RFC 1952, also several members one after the other) to at most `max_bytes`.
std::vector<uint8_t> Gunzip(std::span<const uint8_t> packed, const std::string& path,
                            int64_t max_bytes);

// The first of `names` in the folder, each plain or with .gz; empty if there is none.
std::string FindFile(const std::string& folder, std::span<const std::string> names);

// Throws unless `path` is a folder that can be listed; `what` asks for it ("mnist:DIR").
void RequireFolder(const std::string& path, const std::string& what);

}  // namespace trireme
