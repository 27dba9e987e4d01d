#include "transport/tcp/server_world.h"

#include <unistd.h>

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <thread>

#include "base/error.h"
#include "transport/open_files.h"
#include "transport/shm/group.h"
#include "transport/tcp/connection_loop.h"
#include "transport/tcp/dialled_link.h"
#include "transport/tcp/endpoint.h"
#include "transport/tcp/hmac.h"
#include "transport/tcp/link.h"
#include "transport/tcp/listener.h"

namespace trireme {
namespace {

constexpr double kLastWords_s = 5;  // that the end of a world waits for what was sent

class ServerWorld : public World {
 public:
  ServerWorld(const ServerWorldSetup& setup)
      : setup_(setup), in_(setup.tcp.throttle, setup.tcp.latency_s), out_(setup.tcp.throttle) {}
  Group& group() override { throw Error("ranks at a free pace have no group"); }
  bool together() const override { return false; }
  int rank() override { return setup_.tcp.rank; }
  int size() override { return setup_.tcp.size; }
  void Worked() override {
    if (setup_.steps) setup_.steps->fetch_add(1, std::memory_order_relaxed);
  }

 protected:
  int servers() const { return 1 + int(setup_.more_servers.size()); }
  const std::string& MeetOf(int server) const {
    return server == 0 ? setup_.tcp.meet : setup_.more_servers[size_t(server) - 1];
  }
  std::unique_ptr<TcpLink> NewLink() {
    return std::make_unique<TcpLink>(loop_.io(), setup_.tcp.timeout_s, in_, out_);
  }
  const ServerWorldSetup setup_;
  const uint64_t incarnation_ = RandomNumber();
  RateLimiter in_, out_;
  ConnectionLoop loop_;
};

// What was sent arrives before the ends of links go, where they are connected.
void CloseAndDeliver(std::span<TcpLink* const> links, double patience_s) {
  const Deadline until = After(std::min(patience_s, kLastWords_s));
  for (TcpLink* link : links) link->Close();
  for (TcpLink* link : links) {
    if (link->connected()) link->AwaitDelivery(until);
  }
}

// ---- a server

class ServerEnd : public ServerWorld, private Acceptor {
 public:
  explicit ServerEnd(const ServerWorldSetup& setup)
      : ServerWorld(setup),
        listener_(Listen(loop_.io(), ListensAt()), setup.tcp.secret, incarnation_, Host()) {
    for (int s = 0; s < setup.tcp.rank; ++s) {
      dialled_.push_back(
          std::make_unique<DialledLink>(setup_, MeetOf(s), incarnation_, loop_.io(), NewLink()));
    }
    for (int r = setup.tcp.rank + 1; r < setup.tcp.size; ++r) links_[r] = NewLink();
    listener_.Open();
    loop_.Start();
  }
  ~ServerEnd() override {
    std::vector<TcpLink*> links;
    for (auto& dialled : dialled_) links.push_back(&dialled->link());
    {
      std::lock_guard lock(mutex_);
      for (auto& [number, link] : links_) links.push_back(link.get());
    }
    CloseAndDeliver(links, setup_.tcp.timeout_s);
    loop_.Stop();
  }
  Link& LinkTo(int rank) override {
    if (rank < setup_.tcp.rank) return dialled_.at(size_t(rank))->link();
    std::lock_guard lock(mutex_);
    return *links_.at(rank);
  }
  Acceptor* acceptor() override { return setup_.tcp.rank == 0 ? this : nullptr; }

 private:
  Guest Next() override {
    std::lock_guard lock(mutex_);
    if (guests_.empty()) return {};
    Guest guest = guests_.front();
    guests_.pop_front();
    return guest;
  }
  double timeout_s() const override { return setup_.tcp.timeout_s; }
  void SetWakeEvent(WakeEvent* wake) override {
    std::lock_guard lock(mutex_);
    wake_ = wake;
    if (wake) wake->Notify();
  }

  // Every server has a port that is known before.
  TcpSetup ListensAt() const {
    TcpSetup own = setup_.tcp;
    own.meet = MeetOf(setup_.tcp.rank);
    own.rank = 0;
    return own;
  }
  Listener::Host Host() {
    return {[this](const Hello& hello) { return Judge(hello); },
            [this](Listener::Guest guest) { return Welcome(std::move(guest)); },
            [this](const std::string& who, const std::string& why) { Refused(who, why); },
            [this] { Refused("a connection", OutOfFiles()); }};
  }
  void Refused(const std::string& who, const std::string& why) {
    if (setup_.refused) setup_.refused(who, why);
  }

  std::string Judge(const Hello& hello) {
    if (hello.purpose == Purpose::kRunInfo) return "";
    if (hello.purpose != Purpose::kJoin) return "this server takes only clients that join";
    if (hello.from == kNoRank && servers() > 1) {
      return "a run with several servers (strategy.servers) accepts only its own clients";
    }
    if (hello.from == kNoRank) {
      std::lock_guard lock(mutex_);
      const bool known = numbers_.contains(hello.incarnation);
      return known || numbers_.size() < kMostGuests ? "" : "there are already too many clients";
    }
    const bool possible = hello.from > setup_.tcp.rank && hello.from < setup_.tcp.size;
    return possible ? "" : fmt::format("there is no rank {} in this run", hello.from);
  }

  asio::awaitable<void> Welcome(Listener::Guest guest) {
    const std::string who = Name(guest.socket.remote_endpoint());
    std::string words;
    try {
      const Watch watch(guest.socket, After(kHandshakeSeconds));
      if (guest.hello.purpose == Purpose::kRunInfo) {
        co_await WriteText(guest.socket, setup_.run_info);
        co_return;
      }
      const std::string fingerprint = co_await ReadText(guest.socket, kMostText);
      words = setup_.judge(fingerprint);
      const std::string answer = words.empty() ? "welcome" : words;
      co_await WriteText(guest.socket, answer, !words.empty());
    } catch (const std::system_error& error) {
      words = WhyBroken(error);
    } catch (const std::exception& error) {
      words = error.what();
    }
    if (!words.empty()) {
      Refused(who, words);
      co_return;
    }
    TcpLink& link = LinkOf(guest.hello, who);
    words = co_await link.Carry(std::move(guest.socket), guest.hello.incarnation);
    if (!words.empty()) Refused(who, words);
  }

  // Of a rank, whichever life of it comes; of another client its own, by its incarnation.
  TcpLink& LinkOf(const Hello& hello, const std::string& who) {
    std::lock_guard lock(mutex_);
    if (hello.from != kNoRank) return *links_.at(hello.from);
    const auto [place, is_new] =
        numbers_.emplace(hello.incarnation, setup_.tcp.size + int(numbers_.size()));
    if (is_new) {
      auto& link = links_[place->second] = NewLink();
      guests_.push_back({link.get(), who});
      if (wake_) wake_->Notify();
    }
    return *links_.at(place->second);
  }

  static constexpr size_t kMostGuests = 1024;
  std::vector<std::unique_ptr<DialledLink>> dialled_;  // to the servers before this one
  std::mutex mutex_;                                   // guards all below but the listener
  std::map<int, std::unique_ptr<TcpLink>> links_;
  std::map<uint64_t, int> numbers_;  // of guests
  std::deque<Guest> guests_;
  WakeEvent* wake_ = nullptr;
  Listener listener_;  // the loop's
};

// ---- a client

class ClientEnd : public ServerWorld {
 public:
  explicit ClientEnd(const ServerWorldSetup& setup) : ServerWorld(setup) {
    for (int s = 0; s < servers(); ++s) {
      dialled_.push_back(
          std::make_unique<DialledLink>(setup_, MeetOf(s), incarnation_, loop_.io(), NewLink()));
    }
    loop_.Start();
    AwaitServers();
  }
  ~ClientEnd() override {
    std::vector<TcpLink*> links;
    for (auto& dialled : dialled_) links.push_back(&dialled->link());
    CloseAndDeliver(links, setup_.tcp.timeout_s);
    loop_.Stop();
  }
  Link& LinkTo(int rank) override {
    if (rank < 0 || rank >= servers()) throw Error("rank {} is not a server of this run", rank);
    return dialled_[size_t(rank)]->link();
  }
  Group& Subgroup(int number, int member, int members) override {
    if (setup_.group_memory) {
      if (setup_.group_memory->ranks() != members) {
        throw UsageError(
            "the workers of a group share memory (strategy.inner), but of the {} workers of group "
            "{} only {} are on this machine; change strategy.groups or transport.hosts",
            members, number, setup_.group_memory->ranks());
      }
      shared_group_.emplace(*setup_.group_memory, member, setup_.tcp.timeout_s);
      return *shared_group_;
    }
    if (setup_.group_meet.empty()) {
      throw Error("a client that joins on its own cannot be part of a group (strategy.inner)");
    }
    TcpSetup own = setup_.tcp;
    own.rank = member;
    own.size = members;
    own.meet = setup_.group_meet;
    own.listener = member == 0 ? dup(setup_.group_listener) : -1;
    own.say = {};  // all of it are on this machine
    subgroup_ = JoinTcp(own);
    return subgroup_->group();
  }

 private:
  // Where somebody else starts the servers; later they may go and come back.
  void AwaitServers() {
    const TcpSetup& tcp = setup_.tcp;
    if (!tcp.stop) return;
    const auto answered = [](const std::unique_ptr<DialledLink>& dialled) {
      return dialled->link().connected() || !dialled->link().wants_connection();
    };
    const Deadline patience = After(1), limit = After(tcp.timeout_s);
    bool told = !tcp.say;
    while (!std::all_of(dialled_.begin(), dialled_.end(), answered) && After(0) < limit) {
      if (tcp.stop()) throw Interrupted("stopped by a signal before the server answered");
      if (!told && After(0) >= patience) {
        told = true;
        tcp.say(fmt::format("waiting for the server at {}, at most {:g} s (transport.timeout_s)",
                            tcp.meet, tcp.timeout_s));
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  std::vector<std::unique_ptr<DialledLink>> dialled_;  // by server
  std::unique_ptr<World> subgroup_;
  std::optional<ShmGroup> shared_group_;
};

}  // namespace

std::unique_ptr<World> JoinServerWorld(const ServerWorldSetup& setup) {
  const bool serves = setup.tcp.rank >= 0 && setup.tcp.rank <= int(setup.more_servers.size());
  try {
    if (serves) return std::make_unique<ServerEnd>(setup);
    return std::make_unique<ClientEnd>(setup);
  } catch (const std::system_error& error) {
    if (!IsOutOfFiles(error.code())) throw;
    throw Error("{}", OutOfFiles());
  }
}

std::string FetchRunInfo(const std::string& meet, const std::string& secret, double timeout_s) {
  asio::io_context io(1);
  std::string text;
  const auto read = [&]() -> asio::awaitable<void> {
    const Hello hello{.purpose = Purpose::kRunInfo, .from = kNoRank, .incarnation = RandomNumber()};
    uint64_t found = 0;
    Socket socket = co_await DialName(meet, hello, secret, &found);
    const Watch watch(socket, After(timeout_s));
    text = co_await ReadText(socket, kMostText);
  };
  auto ended = Begin(io, read());
  io.run();
  try {
    if (std::exception_ptr error = ended.get()) std::rethrow_exception(std::move(error));
    return text;
  } catch (const Unanswered& error) {
    throw Error("no server answers at {}: {}", meet, error.what());
  } catch (const std::system_error& error) {
    throw Error("no server answers at {}: {}", meet, WhyBroken(error));
  }
}

}  // namespace trireme
