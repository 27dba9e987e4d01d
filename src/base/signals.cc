#include "base/signals.h"

#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>

#include "base/assert.h"

namespace trireme {
namespace {

// A handler gets no pointer, so what it writes must have static storage. Nothing else reads it
// than the one Signals object.
std::atomic<int> first_signal = 0;
std::atomic<bool> installed = false;
static_assert(std::atomic<int>::is_always_lock_free);  // else not allowed in a handler

constexpr std::array<int, 5> kSignals = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGPIPE};
std::array<struct sigaction, kSignals.size()> old_actions;

void Note(int signal) {
  int none = 0;
  const bool first = first_signal.compare_exchange_strong(none, signal, std::memory_order_relaxed);
  if (!first && signal == SIGINT) _exit(Signals::ExitCodeOf(SIGINT));
}

}  // namespace

Signals::Signals() {
  TRIREME_ASSERT(!installed.exchange(true));
  first_signal = 0;
  for (size_t i = 0; i < kSignals.size(); ++i) {
    struct sigaction action = {};
    action.sa_handler = kSignals[i] == SIGPIPE ? SIG_IGN : Note;
    // Reads and writes of files go on undisturbed. Also where SIGINT was ignored before, as a
    // shell does for jobs in the background: scripts stop runs with `kill -INT`.
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    TRIREME_ASSERT(sigaction(kSignals[i], &action, &old_actions[i]) == 0);
    // nohup: a terminal that goes away is no wish to stop.
    const bool nohup = kSignals[i] == SIGHUP && old_actions[i].sa_handler == SIG_IGN;
    if (nohup) sigaction(SIGHUP, &old_actions[i], nullptr);
  }
}

Signals::~Signals() {
  for (size_t i = 0; i < kSignals.size(); ++i) {
    // A scheduler's wish that comes while the process is on its way out must not kill it: another
    // rank may have heard it first, and all have stopped by now.
    if (kSignals[i] == SIGUSR1) old_actions[i].sa_handler = SIG_IGN;
    sigaction(kSignals[i], &old_actions[i], nullptr);
  }
  installed = false;
}

int Signals::received() const noexcept { return first_signal.load(std::memory_order_relaxed); }

int StopWish::ExitCodeOf(int signal) noexcept {
  if (signal == 0) return 0;
  return 128 + (signal == SIGINT ? SIGINT : SIGTERM);
}

}  // namespace trireme
