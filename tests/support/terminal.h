#pragma once
#include <sys/types.h>

#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace trireme::whole {

// The program in a terminal of its own, as somebody sits before it. What still runs when the object
// goes is killed. One thread.
class Terminal {
 public:
  Terminal(const std::vector<std::string>& args, const std::string& folder);
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  void Type(const std::string& keys);  // "\x03" is Ctrl-C
  std::string screen();                // all that was sent to it so far
  bool Over();                         // without waiting
  int Wait(double timeout_s);          // the exit code; -1: killed, by a signal or past the time

 private:
  void Listen();

  pid_t pid_ = -1;  // -1 when it was waited for
  int status_ = 0;
  int master_ = -1;
  std::mutex mutex_;
  std::string screen_;  // guarded by mutex_
  std::thread reader_;
};

}  // namespace trireme::whole
