#include "transport/forked.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <thread>
#include <vector>

#include "base/assert.h"
#include "base/error.h"
#include "transport/deadline.h"
#include "transport/shared_array.h"

namespace trireme {
namespace {

enum class Kind : int { kNone, kKilled, kError, kUsage, kEcho, kOutdated };

// Another one's end is the reason.
bool IsEcho(Kind kind) { return kind == Kind::kEcho || kind == Kind::kOutdated; }

// What a rank leaves when it throws, in memory that it shares with its parent.
struct LastWords {
  std::atomic<Kind> kind;
  char text[4000];
};

constexpr int kThrew = 1;  // exit status

void Leave(LastWords& words, Kind kind, const char* what) {
  std::snprintf(words.text, sizeof(words.text), "%s", what);
  words.kind.store(kind, std::memory_order_release);
}

[[noreturn]] void Live(const Forked& job, int rank, pid_t parent, LastWords& words) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(kThrew);  // it died before the line above
  setpgid(0, 0);
  int status = kThrew;
  try {
    status = job.run(rank);
    std::fflush(nullptr);
    // A status that cannot be told from an error is handed over as one.
    TRIREME_ASSERT(status >= 0 && status <= 255);
    if (status == kThrew) Leave(words, Kind::kNone, "");
  } catch (const Outdated& error) {
    Leave(words, Kind::kOutdated, error.what());
  } catch (const PeerLost& error) {
    Leave(words, Kind::kEcho, error.what());
  } catch (const UsageError& error) {
    Leave(words, Kind::kUsage, error.what());
  } catch (const std::exception& error) {
    Leave(words, Kind::kError, error.what());
  }
  _exit(status);  // what the parent made is the parent's to clean
}

class Supervisor {
 public:
  explicit Supervisor(const Forked& job) : job_(job), words_(job.ranks), children_(job.ranks) {}

  int Run() {
    Start();
    while (running_ > 0) {
      Reap();
      HandSignalOn();
      if ((failed_ || done_) && std::chrono::steady_clock::now() > patience_) KillAll();
      if (running_ > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    if (failed_) Throw();
    return children_[0].status;
  }

 private:
  struct Child {
    pid_t pid = -1;  // -1: has ended
    int status = 0;
    bool awaited = false;  // its group is to be started again
    bool given_up = false;
  };

  void Start() {
    const pid_t parent = getpid();
    std::fflush(nullptr);  // or every child would write it again
    for (int r = 0; r < job_.ranks && !failed_; ++r) StartRank(r, parent);
  }

  void StartRank(int r, pid_t parent) {
    words_[r].kind = Kind::kNone;
    const pid_t pid = fork();
    if (pid == 0) Live(job_, r, parent, words_[r]);
    if (pid < 0) {
      return Fail(
          r, Kind::kError,
          fmt::format("cannot start the process: {}; lower transport.ranks", std::strerror(errno)));
    }
    children_[r].pid = pid;
    ++running_;
  }

  // Causes before their echoes.
  void Reap() {
    std::vector<int> echoes;
    for (int r = 0; r < job_.ranks; ++r) {
      Child& child = children_[r];
      int status = 0;
      if (child.pid < 0 || waitpid(child.pid, &status, WNOHANG) <= 0) continue;
      child.pid = -1;
      --running_;
      if (WIFSIGNALED(status)) {
        // Killed by us is no news.
        if (!killing_) Lose(r, Kind::kKilled, DeathBy(WTERMSIG(status)));
        continue;
      }
      child.status = WEXITSTATUS(status);
      if (child.status != kThrew) {
        if (job_.fate && job_.first + r == 0 && !done_) {
          done_ = true;
          patience_ = After(kGrace_s);
        }
        // It was ready just before it would have been killed with its group.
        if (child.awaited && !failed_ && !done_ && !handed_on_) StartGroup(r);
        continue;
      }
      const Kind kind = words_[r].kind.load(std::memory_order_acquire);
      if (kind == Kind::kNone) {
        Lose(r, Kind::kError, "exited without an error message");
      } else if (IsEcho(kind)) {
        echoes.push_back(r);
      } else {
        Lose(r, kind, words_[r].text);
      }
    }
    for (const int r : echoes) {
      const bool started_again = children_[r].pid > 0;
      if (!started_again) Lose(r, words_[r].kind, words_[r].text);
    }
  }

  static Forked::End EndOf(Kind kind) {
    if (kind == Kind::kKilled) return Forked::End::kKilled;
    if (kind == Kind::kOutdated) return Forked::End::kOutdated;
    return kind == Kind::kEcho ? Forked::End::kLostPeer : Forked::End::kThrew;
  }

  static std::string DeathBy(int signal) {
    return fmt::format("killed by signal {} ({})", signal, strsignal(signal));
  }

  void Lose(int rank, Kind kind, const std::string& what) {
    if (!job_.fate || failed_) return Fail(rank, kind, what);
    // It is over, or about to be: who comes late is not missed.
    if (done_ || (handed_on_ && job_.first + rank != 0)) return;
    if (children_[rank].given_up) return;
    if (children_[rank].awaited) return StartGroup(rank);
    if (handed_on_) return Fail(rank, kind, what);
    switch (job_.fate(rank, what, EndOf(kind))) {
      case Forked::Fate::kEndsAll:
        return Fail(rank, kind, what);
      case Forked::Fate::kStartAgain:
        return StartRank(rank, getpid());
      case Forked::Fate::kStartGroupAgain:
        KillGroup(rank, &Child::awaited);
        return StartGroup(rank);
      case Forked::Fate::kGoOnWithout:
        return;
      case Forked::Fate::kGoOnWithoutGroup:
        return KillGroup(rank, &Child::given_up);
    }
  }

  void KillGroup(int rank, bool Child::*mark) {
    for (int r = 0; r < job_.ranks; ++r) {
      if (job_.group(r) != job_.group(rank)) continue;
      children_[r].*mark = true;
      if (children_[r].pid > 0) kill(children_[r].pid, SIGKILL);
    }
  }

  // As soon as all of it have ended.
  void StartGroup(int rank) {
    const auto is_of_it = [&](int r) { return job_.group(r) == job_.group(rank); };
    for (int r = 0; r < job_.ranks; ++r) {
      if (is_of_it(r) && children_[r].pid > 0) return;
    }
    for (int r = 0; r < job_.ranks && !failed_; ++r) {
      if (!is_of_it(r)) continue;
      children_[r].awaited = false;
      StartRank(r, getpid());
    }
  }

  void Fail(int rank, Kind kind, const std::string& what) {
    if (!failed_) {
      patience_ = After(kGrace_s);
      job_.lost(rank, what);
    }
    if (!failed_ || (IsEcho(kind_) && !IsEcho(kind))) {
      kind_ = kind;
      rank_ = rank;
      what_ = what;
    }
    failed_ = true;
  }

  void HandSignalOn() {
    const int signal = job_.signal ? job_.signal() : 0;
    if (signal == 0 || handed_on_) return;
    handed_on_ = true;
    // The first of all last: what the others hear from it is then no news to them.
    for (auto child = children_.rbegin(); child != children_.rend(); ++child) {
      if (child->pid > 0) kill(child->pid, signal);
    }
  }

  void KillAll() {
    killing_ = true;
    for (const Child& child : children_) {
      if (child.pid > 0) kill(child.pid, SIGKILL);
    }
  }

  [[noreturn]] void Throw() const {
    if (IsEcho(kind_)) throw PeerLost(what_);  // says which rank it is itself
    const std::string who =
        fmt::format("rank {} of {}", job_.first + rank_, job_.world ? job_.world : job_.ranks);
    const bool says_who = what_.starts_with(who + ":");
    const std::string text = says_who ? what_ : fmt::format("{} ({})", what_, who);
    if (kind_ == Kind::kUsage) throw UsageError(text);
    if (kind_ == Kind::kKilled) throw Killed(text);
    throw Error(text);
  }

  const Forked& job_;
  SharedArray<LastWords> words_;
  std::vector<Child> children_;
  int running_ = 0;
  bool failed_ = false, killing_ = false, handed_on_ = false;
  bool done_ = false;  // the first has returned, and there is a fate
  Deadline patience_;
  Kind kind_ = Kind::kNone;
  int rank_ = 0;
  std::string what_;
};

}  // namespace

int RunForked(const Forked& job) { return Supervisor(job).Run(); }

}  // namespace trireme
