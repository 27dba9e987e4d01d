#include "study/child.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <thread>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trireme {
namespace {

// Between fork and exec: system calls only. `log`: -1 for this process's own output. Signals are
// blocked: one that is handed on now must end the child, not be taken by a handler of this process.
[[noreturn]] void BecomeChild(const char* program, char* const* arguments, int log, pid_t parent,
                              const sigset_t& signals) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDONLY);
  if (getppid() != parent || nothing < 0 || dup2(nothing, 0) < 0 ||
      (log >= 0 && (dup2(log, 1) < 0 || dup2(log, 2) < 0))) {
    _exit(127);
  }
  signal(SIGTERM, SIG_DFL);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execvp(program, arguments);
  _exit(127);
}

pid_t StartChild(const char* program, std::vector<std::string> words, const std::string& log) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int fd =
      log.empty() ? -1 : open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0 && !log.empty()) throw Error("cannot write {}: {}", log, std::strerror(errno));
  const pid_t parent = getpid();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t child = fork();
  const int error = errno;
  if (child == 0) BecomeChild(program, arguments.data(), fd, parent, before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (fd >= 0) close(fd);
  if (child < 0) throw Error("cannot start the program again: {}", std::strerror(error));
  return child;
}

}  // namespace

int RunChild(const std::vector<std::string>& words, const std::string& log, StopNotice& signals,
             const std::vector<std::string>& launcher) {
  constexpr char kThisProgram[] = "/proc/self/exe";  // a launcher would take it for itself
  std::vector<std::string> all = launcher;
  all.push_back(launcher.empty() ? "trireme" : std::filesystem::read_symlink(kThisProgram));
  all.insert(all.end(), words.begin(), words.end());
  const pid_t child =
      StartChild(launcher.empty() ? kThisProgram : launcher[0].c_str(), std::move(all), log);
  bool told = false;
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(child, &status, WNOHANG);
    if (ended < 0 && errno != EINTR) {
      throw Error("cannot wait for the program: {}", std::strerror(errno));
    }
    if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    // Not as an interrupt: a terminal has sent one to both, and a second one ends a run at once.
    if (signals.stop() && !told) {
      kill(child, SIGTERM);
      told = true;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
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
