#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/function_ref.h"

namespace trireme {

// The program that fetches: it knows the site's proxies and certificates.
struct DownloadTool {
  std::string path;  // of curl or wget
  bool curl = true;
};
// The first of the two in these folders (PATH); an empty path: neither is there.
DownloadTool FindDownloadTool(const std::string& folders);

int64_t ArrivedBytes(const std::string& path);  // 0: there is no such file

struct Download {
  std::string url;
  std::string path;        // the beginning of the file, where there is one: it is continued
  int64_t most_bytes = 0;  // more is cut off
  double stall_s = 30;     // without a byte
};

// Fetches with the tool, until it ends; `progress` is told now and then how many bytes are there.
// Returns what went wrong, in the tool's words; empty: nothing. What has arrived stays.
std::string RunDownload(const DownloadTool& tool, const Download& download,
                        FunctionRef<void(int64_t bytes)> progress);

}  // namespace trireme
