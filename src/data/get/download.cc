#include "data/get/download.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

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

// Between fork and exec: system calls only.
[[noreturn]] void BecomeTool(const char* program, char* const* arguments, int words, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDWR);
  if (getppid() != parent || nothing < 0 || dup2(nothing, 0) < 0 || dup2(words, 1) < 0 ||
      dup2(words, 2) < 0) {
    _exit(127);
  }
  execv(program, arguments);
  _exit(127);
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
    for (const std::string& folder : Split(folders, ':')) {
      const std::string path = fmt::format("{}/{}", folder, name);
      if (!folder.empty() && access(path.c_str(), X_OK) == 0) {
        return {path, std::string_view(name) == "curl"};
      }
    }
  }
  return {};
}

std::string RunDownload(const DownloadTool& tool, const Download& download,
                        FunctionRef<void(int64_t)> progress) {
  std::vector<std::string> words = ToolWords(tool, download);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string said = download.path + ".log-XXXXXX";
  const int log = mkostemp(said.data(), O_CLOEXEC);
  if (log < 0) return fmt::format("cannot write {}: {}", said, std::strerror(errno));
  unlink(said.c_str());
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) BecomeTool(tool.path.c_str(), arguments.data(), log, parent);
  int status = 0;
  bool too_much = false;
  while (child > 0) {
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) break;
    const int64_t bytes = ArrivedBytes(download.path);
    progress(bytes);
    if (bytes > download.most_bytes && !too_much) {
      too_much = true;
      kill(child, SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  const std::string last = LastToolWords(log);
  close(log);
  if (child < 0) return fmt::format("cannot start {}", tool.path);
  const int64_t bytes = ArrivedBytes(download.path);
  if (too_much || bytes > download.most_bytes) {
    return fmt::format("sent more than {} bytes", download.most_bytes);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  return last.empty() ? fmt::format("{} failed", tool.path) : last;
}

}  // namespace trireme
