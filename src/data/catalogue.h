#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/function_ref.h"

namespace trireme {

// A file that mirrors offer. Some of them pack it anew, so what is inside counts where it is known.
struct OfferedFile {
  std::string_view name;    // on the mirror
  int64_t bytes = 0;        // as it arrives
  std::string_view sha256;  // as it arrives
  std::string_view
      unpacked;  // sha256 of what the .gz holds; empty: an archive, taken as it arrives
};

// Folders that only a person can fetch, because that takes an account: brought here unpacked.
struct OfferedFolders {
  std::string_view place;                   // where they are
  std::span<const std::string_view> names;  // each may lie in a folder of its own name
  int64_t files = 0;
  int64_t bytes = 0;
  std::string_view sha256;  // of what sha256sum prints of all files, sorted by path as in C
};

// A data set that `trireme data get` fetches: files that stay as they are, one archive, or folders.
struct OfferedData {
  std::string_view name;
  std::string_view help;
  std::span<const OfferedFile> files;
  std::span<const std::string_view> mirrors;  // addresses of folders; tried in this order
  std::string_view inside;                    // the archive's folder that holds the data
  std::string_view source;                    // what --data takes: this, or with a folder behind it
  const OfferedFolders* folders = nullptr;    // instead of files and mirrors
};

std::span<const OfferedData> OfferedDataSets();
const OfferedData& FindOffered(std::string_view name);  // UsageError: not offered, and what to do

// Where data are kept: $TRIREME_DATA, else trireme in the user's cache. Empty: neither is known.
std::string DataHome(FunctionRef<const char*(const char* name)> variable);
// The folder of a data set there; empty: it was not fetched.
std::string FetchedFolder(std::string_view name);

}  // namespace trireme
