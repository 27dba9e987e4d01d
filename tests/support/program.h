#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "base/clock.h"

namespace trireme::whole {

// What a run of the program left behind.
struct Outcome {
  int exit_code = -1;  // -1 if a signal ended it
  int signal = 0;      // that signal
  bool in_time = true;
  std::string out, err;
};

// The program, started without a shell, its output in files of `folder`. What still runs when the
// object goes is killed. One thread.
class Running {
 public:
  // `launcher`: a command that starts the program, as `mpirun -n 2` and `env A=B` do.
  Running(const std::vector<std::string>& args, const std::string& folder,
          const std::vector<std::string>& launcher = {});
  ~Running();
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  pid_t pid() const { return pid_; }
  void Kill(int signal);
  bool Over();                     // without waiting
  Outcome Wait(double timeout_s);  // past it the program is killed
  std::string out() const;         // so far
  std::string err() const;

 private:
  pid_t pid_ = -1;  // -1 when it was waited for
  int status_ = 0;
  std::string out_path_, err_path_;
};

}  // namespace trireme::whole
