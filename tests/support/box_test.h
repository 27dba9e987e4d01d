#pragma once
#include "support/ranks_test.h"
#include "transport/tcp/memory_way.h"

namespace trireme::whole {

// A memory box is a process; so are its clients, or they are the test.
class MemoryBoxTest : public RanksTest {
 protected:
  // Starts it until it listens: while a box was away its port may have been somebody else's.
  std::unique_ptr<Running> Serve(const Words& more = {}, const std::string& timeout_s = "120") {
    for (const Stopwatch watch; watch.seconds() < kTimeout;) {
      auto running = Start(Words{"memory-box", "--listen", address_, "--size", "32M", "--threads",
                                 "2", "--timeout-s", timeout_s} +
                           more);
      while (!running->Over()) {
        const std::string err = running->err(), words = "listening on ";
        const size_t at = err.find(words), end = err.find(',', at);
        if (at != err.npos && end != err.npos) {
          address_ = err.substr(at + words.size(), end - at - words.size());
          return running;
        }
        SleepFor(0.01);
      }
      SleepFor(0.1);
    }
    ADD_FAILURE() << "no box listens on " << address_;
    return nullptr;
  }
  std::unique_ptr<Memory> Connect() const {
    return ConnectTcp({.meet = address_, .timeout_s = kTimeout});
  }

  std::string address_ = "127.0.0.1:0";
};

}  // namespace trireme::whole
