#pragma once
#include <optional>
#include <string>
#include <vector>

#include "data/folder_scan.h"

namespace trireme {

// What is known of folders from earlier runs, in $XDG_CACHE_HOME/trireme or ~/.cache/trireme. A
// cache that cannot be read or written, or is damaged, is as none.

// As ScanFolder, by the cache where no directory has changed since.
ScannedFolder ScanFolderCached(const std::string& folder);

// The file of a cache, "" where there is no place for one. `what` says whose it is.
std::string CacheFile(const std::string& folder, const std::string& what);

// Strings without zero bytes, with a checksum.
void WriteCache(const std::string& path, const std::vector<std::string>& fields);
std::optional<std::vector<std::string>> ReadCache(const std::string& path);

}  // namespace trireme
