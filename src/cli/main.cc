#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/program.h"

namespace {

// With `>&-` the next file that is opened would become the standard output, and a checkpoint would
// receive what is printed.
void OpenStandardFiles() {
  for (int fd = 0; fd <= 2; ++fd) {
    if (fcntl(fd, F_GETFD) == -1) open("/dev/null", O_RDWR);  // takes the lowest number: fd
  }
}

// For mapped memory whose file is gone; an error of this program may read as well. The first such
// signal says where; the second, from the same instruction, ends the process.
void SayWhere(int, siginfo_t* info, void*) {
  if (info->si_code <= 0) {  // somebody sent it: no instruction will send another
    raise(SIGBUS);           // comes when this function has returned
    return;
  }
  char words[] =
      "error: SIGBUS at address 0x0000000000000000; probably a mapped file (a pack or another data "
      "source) became shorter while it was read, or its disk failed\n";
  char* digit = std::strchr(words, ';');
  for (auto left = reinterpret_cast<uintptr_t>(info->si_addr); left != 0; left /= 16) {
    *--digit = "0123456789abcdef"[left % 16];
  }
  if (write(STDERR_FILENO, words, sizeof(words) - 1) < 0) return;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  OpenStandardFiles();
  std::signal(SIGPIPE, SIG_IGN);  // a reader that is gone is an error of write(2)
  std::signal(SIGXFSZ, SIG_IGN);  // so is a limit on the size of files
  struct sigaction lost = {};
  lost.sa_sigaction = SayWhere;
  lost.sa_flags = static_cast<int>(SA_RESETHAND | SA_SIGINFO);
  sigaction(SIGBUS, &lost, nullptr);
  trireme::LogOutput log;
  trireme::Output out;
  trireme::Process process{out, log};
  return trireme::RunProgram(trireme::AllCommands(), words, process);
}
