#include "support/program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>

#include "base/error.h"
#include "base/files.h"

extern char** environ;

namespace trireme::whole {

Running::Running(const std::vector<std::string>& args, const std::string& folder,
                 const std::vector<std::string>& launcher) {
  std::string out = folder + "/.out-XXXXXX", err = folder + "/.err-XXXXXX";
  const int out_fd = mkostemp(out.data(), O_CLOEXEC), err_fd = mkostemp(err.data(), O_CLOEXEC);
  if (out_fd < 0 || err_fd < 0) throw Error("{}: cannot create files for the output", folder);
  out_path_ = out;
  err_path_ = err;

  std::vector<std::string> words = launcher;
  words.push_back(TRIREME_PROGRAM);
  words.insert(words.end(), args.begin(), args.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
  posix_spawn_file_actions_adddup2(&actions, err_fd, 2);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  const int error = posix_spawnp(&pid_, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(out_fd);
  close(err_fd);
  if (error) throw Error("cannot start {}: {}", argv[0], std::generic_category().message(error));
}

Running::~Running() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Running::Kill(int signal) {
  if (pid_ > 0) kill(pid_, signal);
}

bool Running::Over() {
  if (pid_ > 0 && waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
  return pid_ < 0;
}

Outcome Running::Wait(double timeout_s) {
  Outcome outcome;
  const Stopwatch watch;
  while (!Over()) {
    if (watch.seconds() > timeout_s && outcome.in_time) {
      outcome.in_time = false;
      Kill(SIGKILL);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (WIFEXITED(status_)) outcome.exit_code = WEXITSTATUS(status_);
  if (WIFSIGNALED(status_)) outcome.signal = WTERMSIG(status_);
  outcome.out = ReadFile(out_path_);
  outcome.err = ReadFile(err_path_);
  return outcome;
}

std::string Running::out() const { return ReadFile(out_path_); }

std::string Running::err() const { return ReadFile(err_path_); }

}  // namespace trireme::whole
