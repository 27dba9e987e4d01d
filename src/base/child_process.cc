#include "base/child_process.h"

#include <fcntl.h>
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
#include "base/text.h"

namespace trireme {
namespace {

constexpr auto kMoment = std::chrono::milliseconds(10);

// Between fork and exec: system calls only. Signals are blocked: one that is sent now must end the
// child, not be taken by a handler of this process.
[[noreturn]] void Become(const char* program, char* const* words, int output, pid_t parent,
                         const sigset_t& signals) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nothing = open("/dev/null", O_RDONLY);
  if (getppid() != parent || nothing < 0 || dup2(nothing, 0) < 0 ||
      (output >= 0 && (dup2(output, 1) < 0 || dup2(output, 2) < 0))) {
    _exit(127);
  }
  signal(SIGTERM, SIG_DFL);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  execvp(program, words);
  _exit(127);
}

}  // namespace

std::string FindProgram(std::string_view program, std::string_view folders) {
  for (const std::string& folder : Split(folders, ':')) {
    if (folder.empty()) continue;
    const std::filesystem::path file = std::filesystem::path(folder) / program;
    std::error_code none;
    if (std::filesystem::is_regular_file(file, none) && access(file.c_str(), X_OK) == 0) {
      return file.string();
    }
  }
  return "";
}

ChildProcess::ChildProcess(const std::string& program, std::vector<std::string> words, int output) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  const pid_t parent = getpid();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_ = fork();
  const int error = errno;
  if (pid_ == 0) Become(program.c_str(), pointers.data(), output, parent, before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid_ < 0) throw Error("cannot start {}: {}", words[0], std::strerror(error));
}

ChildProcess::~ChildProcess() {
  if (code_) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

std::optional<int> ChildProcess::Poll() {
  if (code_) return code_;
  int status = 0;
  const pid_t ended = waitpid(pid_, &status, WNOHANG);
  if (ended < 0 && errno != EINTR) {
    code_ = 127;  // somebody else has waited for it: nothing is left to kill
    throw Error("cannot wait for a program that was started: {}", std::strerror(errno));
  }
  if (ended == pid_) {
    code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  } else {
    std::this_thread::sleep_for(kMoment);
  }
  return code_;
}

void ChildProcess::Send(int signal) {
  if (!code_) kill(pid_, signal);
}

}  // namespace trireme
