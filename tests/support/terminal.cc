#include "support/terminal.h"

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>

#include "base/clock.h"
#include "base/error.h"

namespace trireme::whole {

Terminal::Terminal(const std::vector<std::string>& args, const std::string& folder) {
  std::vector<std::string> words = args;
  words.insert(words.begin(), TRIREME_PROGRAM);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const winsize size{.ws_row = 40, .ws_col = 200, .ws_xpixel = 0, .ws_ypixel = 0};
  pid_ = forkpty(&master_, nullptr, nullptr, &size);
  if (pid_ < 0) throw Error("no terminal can be made");
  if (pid_ == 0) {
    if (chdir(folder.c_str()) != 0 || setenv("TERM", "xterm", 1) != 0) _exit(127);
    execv(argv[0], argv.data());
    _exit(127);
  }
  reader_ = std::thread([this] { Listen(); });
}

Terminal::~Terminal() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (reader_.joinable()) reader_.join();
  close(master_);
}

// Until nobody holds the other end any more.
void Terminal::Listen() {
  char buffer[4096];
  for (ssize_t n; (n = read(master_, buffer, sizeof buffer)) > 0;) {
    const std::lock_guard lock(mutex_);
    screen_.append(buffer, size_t(n));
  }
}

void Terminal::Type(const std::string& keys) {
  if (write(master_, keys.data(), keys.size()) < 0) throw Error("the terminal is gone");
}

std::string Terminal::screen() {
  const std::lock_guard lock(mutex_);
  return screen_;
}

bool Terminal::Over() {
  if (pid_ > 0 && waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
  return pid_ < 0;
}

int Terminal::Wait(double timeout_s) {
  for (const Stopwatch watch; !Over() && watch.seconds() < timeout_s;) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (pid_ > 0) return -1;
  if (reader_.joinable()) reader_.join();  // it has heard all
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1;
}

}  // namespace trireme::whole
