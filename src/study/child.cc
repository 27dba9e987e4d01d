#include "study/child.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/child_process.h"
#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trireme {

int RunChild(const std::vector<std::string>& words, const std::string& log, StopNotice& signals,
             const std::vector<std::string>& launcher) {
  constexpr char kThisProgram[] = "/proc/self/exe";  // a launcher would take it for itself
  std::vector<std::string> all = launcher;
  all.push_back(launcher.empty() ? "trireme" : std::filesystem::read_symlink(kThisProgram));
  all.insert(all.end(), words.begin(), words.end());
  const int fd =
      log.empty() ? -1 : open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 && !log.empty()) throw Error("cannot write {}: {}", log, std::strerror(errno));
  ChildProcess child(launcher.empty() ? kThisProgram : launcher[0], std::move(all), fd);
  if (fd >= 0) close(fd);
  bool told = false;
  for (;;) {
    if (const auto code = child.Poll()) return *code;
    // Not as an interrupt: a terminal has sent one to both, and a second one ends a run at once.
    if (signals.stop() && !told) {
      child.Send(SIGTERM);
      told = true;
    }
  }
}

std::string ChildError(const std::string& log, int code) {
  std::string last;
  for (const std::string& line : Split(ReadFile(log), '\n')) {
    const size_t at = line.find("error: ");
    if (at != line.npos) return line.substr(at + 7);
    if (!Trim(line).empty()) last = Trim(line);
  }
  return fmt::format("exit code {}{}{} (see {})", code, last.empty() ? "" : ": ", last, log);
}

}  // namespace trireme
