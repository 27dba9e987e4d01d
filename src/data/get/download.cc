#include "data/get/download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <optional>

#include "base/child_process.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> ToolWords(const DownloadTool& tool, const Download& download) {
  const std::string seconds = std::to_string(int(std::ceil(download.stall_s)));
  if (tool.curl) {
    return {"curl",
            "--fail",
            "--location",
            "--silent",
            "--show-error",
            "--speed-limit",
            "1000",
            "--speed-time",
            seconds,
            "--connect-timeout",
            seconds,
            "-C",
            "-",
            "--output",
            download.path,
            "--",
            download.url};
  }
  return {"wget",       "--no-verbose",
          "--tries=1",  "--timeout=" + seconds,
          "--continue", "--output-document=" + download.path,
          "--",         download.url};
}

// The last line that says something.
std::string LastToolWords(int file) {
  std::string text(4096, '\0');
  const off_t end = lseek(file, 0, SEEK_END);
  const off_t begin = std::max<off_t>(0, end - off_t(text.size()));
  const ssize_t got = pread(file, text.data(), text.size(), begin);
  text.resize(size_t(std::max<ssize_t>(0, got)));
  std::string last;
  for (const std::string& line : Split(text, '\n')) {
    if (!Trim(line).empty()) last = Trim(line);
  }
  return last;
}

}  // namespace

int64_t ArrivedBytes(const std::string& path) {
  std::error_code none;
  const auto size = fs::file_size(path, none);
  return none ? 0 : int64_t(size);
}

DownloadTool FindDownloadTool(const std::string& folders) {
  for (const char* name : {"curl", "wget"}) {
    const std::string path = FindProgram(name, folders);
    if (!path.empty()) return {path, std::string_view(name) == "curl"};
  }
  return {};
}

std::string RunDownload(const DownloadTool& tool, const Download& download,
                        FunctionRef<void(int64_t)> progress) {
  std::string said = download.path + ".log-XXXXXX";
  const int log = mkostemp(said.data(), O_CLOEXEC);
  if (log < 0) return fmt::format("cannot write {}: {}", said, std::strerror(errno));
  unlink(said.c_str());
  ChildProcess child(tool.path, ToolWords(tool, download), log);
  bool too_much = false;
  std::optional<int> code;
  while (!(code = child.Poll())) {
    const int64_t bytes = ArrivedBytes(download.path);
    progress(bytes);
    if (bytes <= download.most_bytes || too_much) continue;
    too_much = true;
    child.Send(SIGKILL);
  }
  const std::string last = LastToolWords(log);
  close(log);
  const int64_t bytes = ArrivedBytes(download.path);
  if (too_much || bytes > download.most_bytes) {
    return fmt::format("sent more than {} bytes", download.most_bytes);
  }
  if (code == 0) return "";
  return last.empty() ? fmt::format("{} failed", tool.path) : last;
}

}  // namespace trireme
