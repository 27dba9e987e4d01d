#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// The first of `folders` (as in PATH, divided by colons) that holds an executable file `program`.
std::string FindProgram(std::string_view program, std::string_view folders);

// A program that runs beside this process and does not outlive it. Reads nothing.
class ChildProcess {
 public:
  // `program` is a path, or is looked for in PATH; words[0] is what it is told to be called.
  // `output`: the file that it prints to, or -1 for where this process prints.
  ChildProcess(const std::string& program, std::vector<std::string> words, int output);
  ~ChildProcess();  // kills it if it still runs
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Waits a moment, at most. Its exit code, or 128 + the signal that ended it; none while it runs.
  // 127 if there is no such program.
  std::optional<int> Poll();
  void Send(int signal);

 private:
  pid_t pid_ = -1;
  std::optional<int> code_;
};

}  // namespace trireme
