#include "transport/tcp/world.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>

#include "base/assert.h"
#include "base/start_thread.h"
#include "transport/open_files.h"
#include "transport/tcp/endpoint.h"
#include "transport/tcp/group.h"
#include "transport/tcp/hmac.h"
#include "transport/tcp/link.h"
#include "transport/tcp/rendezvous.h"

namespace trireme {
namespace {

constexpr double kLinger = 10;     // seconds that the end of a world waits for its last words
constexpr double kLingerLost = 2;  // where the world is lost anyway

class TcpWorld : public World {
 public:
  explicit TcpWorld(const TcpSetup& setup);
  ~TcpWorld() override;
  Group& group() override { return group_; }
  Link& LinkTo(int rank) override;

 private:
  TcpGroup::Observer GroupObserver();
  Listener::Host Host();
  std::string Judge(const Hello& hello);
  asio::awaitable<void> Welcome(Listener::Guest guest);
  asio::awaitable<void> KeepConnected(TcpLink& link, int rank);
  TcpLink& LinkEnd(int rank, bool& made);
  void AbortLinks(const std::string& what);
  void AwaitMeeting();
  void RunLoop();

  const TcpSetup setup_;
  const uint64_t incarnation_ = RandomNumber();
  asio::io_context io_{1};
  const asio::executor_work_guard<asio::io_context::executor_type> work_{io_.get_executor()};
  RateLimiter in_, out_;
  TcpGroup group_;
  std::mutex mutex_;  // guards links_ and lost_
  std::vector<std::unique_ptr<TcpLink>> links_;
  std::optional<std::string> lost_;
  Rendezvous rendezvous_;
  std::optional<Listener> listener_;  // none in a world of one
  class Loop {                        // the thread; stops before anything else goes
   public:
    explicit Loop(TcpWorld& world)
        : world_(world),
          thread_(StartThread("the thread of the connections", [&world] { world.RunLoop(); })) {}
    ~Loop() {
      world_.io_.stop();
      thread_.join();
    }

   private:
    TcpWorld& world_;
    std::jthread thread_;
  };
  std::optional<Loop> loop_;
};

TcpWorld::TcpWorld(const TcpSetup& setup)
    : setup_(setup),
      in_(setup.throttle, setup.latency_s),
      out_(setup.throttle),
      group_(io_, setup.rank, setup.size, setup.timeout_s, in_, out_, GroupObserver()),
      links_(size_t(setup.size)),
      rendezvous_(io_, setup, incarnation_,
                  [this](int rank, Socket socket) { group_.Attach(rank, std::move(socket)); }) {
  if (setup.size == 1) return;
  listener_.emplace(Listen(io_, setup), setup.secret, incarnation_, Host());
  listener_->Open();
  loop_.emplace(*this);
  AwaitMeeting();
}

void TcpWorld::AwaitMeeting() {
  constexpr std::chrono::milliseconds kLook(20);
  const Deadline patience = After(1);
  const Interrupted interrupted("rank {} of {}: stopped by a signal before all ranks had met",
                                setup_.rank, setup_.size);
  bool told = !setup_.say;
  auto met = Begin(io_, rendezvous_.Run(*listener_));
  while (met.wait_for(kLook) != std::future_status::ready) {
    if (!told && After(0) >= patience) {
      told = true;
      asio::post(io_, [this] { setup_.say(rendezvous_.Waiting()); });
    }
    if (!setup_.stop || !setup_.stop()) continue;
    asio::post(io_, [this] {
      rendezvous_.Fail(fmt::format("rank {} was stopped by a signal", setup_.rank));
    });
    met.wait_for(std::chrono::seconds(1));  // rank 0 tells those who have come
    throw interrupted;
  }
  std::exception_ptr error = met.get();
  if (error && setup_.stop && setup_.stop()) throw interrupted;  // rank 0 was, too, and said so
  if (error) std::rethrow_exception(std::move(error));
}

TcpWorld::~TcpWorld() {
  if (!loop_) return;
  const Deadline until = After(std::min(setup_.timeout_s, group_.lost() ? kLingerLost : kLinger));
  const auto each_link = [&](auto&& act) {
    for (auto& link : links_) {
      if (link) act(*link);
    }
  };
  {
    std::lock_guard lock(mutex_);
    each_link([](TcpLink& link) { link.Close(); });
  }
  each_link([&](TcpLink& link) { link.AwaitDelivery(until); });
  group_.SayGoodbye(until);
}

void TcpWorld::RunLoop() {
  for (;;) {
    try {
      io_.run();
      return;
    } catch (const std::exception& error) {
      group_.Abort(fmt::format("its connections failed: {}", error.what()));
    }
  }
}

// Everything here happens later, on the loop's thread, without the group's mutex.
TcpGroup::Observer TcpWorld::GroupObserver() {
  const auto called = [this](int peer) {
    if (peer >= setup_.rank) return;  // only servers call
    asio::post(io_, [this, peer] { LinkTo(peer); });
  };
  const auto over = [this](int peer) {
    asio::post(io_, [this, peer] {
      std::lock_guard lock(mutex_);
      if (auto& link = links_[size_t(peer)]) link->GiveUp();
    });
  };
  const auto lost = [this](const std::string& what) {
    asio::post(io_, [this, what] {
      rendezvous_.Fail(what);
      AbortLinks(what);
    });
  };
  return {called, over, lost};
}

void TcpWorld::AbortLinks(const std::string& what) {
  std::lock_guard lock(mutex_);
  lost_ = what;
  for (auto& link : links_) {
    if (link) link->Abort(what);
  }
}

Listener::Host TcpWorld::Host() {
  return {.judge = [this](const Hello& hello) { return Judge(hello); },
          .welcome = [this](Listener::Guest guest) { return Welcome(std::move(guest)); },
          .full = [this] { rendezvous_.Fail(OutOfFiles(setup_.size + kOtherFiles)); }};
}

std::string TcpWorld::Judge(const Hello& hello) {
  if (hello.purpose != Purpose::kLink) return rendezvous_.Judge(hello);
  const bool possible = hello.size == setup_.size && hello.to == setup_.rank &&
                        hello.from > setup_.rank && hello.from < setup_.size &&
                        hello.expected == incarnation_;
  return possible ? "" : fmt::format("rank {} has no such link", setup_.rank);
}

asio::awaitable<void> TcpWorld::Welcome(Listener::Guest guest) {
  if (guest.hello.purpose != Purpose::kLink) {
    co_await rendezvous_.Welcome(std::move(guest));
    co_return;
  }
  bool made = false;
  TcpLink& link = LinkEnd(guest.hello.from, made);
  co_await link.Carry(std::move(guest.socket), guest.hello.incarnation);
}

TcpLink& TcpWorld::LinkEnd(int rank, bool& made) {
  std::lock_guard lock(mutex_);
  auto& link = links_[size_t(rank)];
  made = !link;
  if (made) {
    link = std::make_unique<TcpLink>(io_, setup_.timeout_s, in_, out_);
    if (lost_) link->Abort(*lost_);
  }
  return *link;
}

Link& TcpWorld::LinkTo(int rank) {
  TRIREME_ASSERT(rank != setup_.rank && rank >= 0 && rank < setup_.size);
  bool made = false;
  TcpLink& link = LinkEnd(rank, made);
  if (made && rank < setup_.rank) {
    asio::co_spawn(io_, KeepConnected(link, rank), asio::detached);
  } else if (made) {
    group_.Call(rank);  // the higher rank connects
  }
  return link;
}

asio::awaitable<void> TcpWorld::KeepConnected(TcpLink& link, int rank) {
  LoopEvent pause(io_.get_executor());
  const Hello hello = {Purpose::kLink, setup_.size,  setup_.rank,
                       rank,           incarnation_, rendezvous_.incarnation(rank)};
  for (double wait = 0.02; link.wants_connection(); wait = std::min(2 * wait, 1.0)) {
    try {
      uint64_t found = 0;
      Socket socket = co_await Dial(rendezvous_.where(rank), hello, setup_.secret, &found);
      wait = 0.02;
      co_await link.Carry(std::move(socket), found);
    } catch (const std::exception&) {  // cut off: try again
    }
    co_await pause.Wait(After(wait));
  }
}

}  // namespace

std::unique_ptr<World> JoinTcp(const TcpSetup& setup) {
  TRIREME_ASSERT(setup.size >= 1 && setup.rank >= 0 && setup.rank < setup.size);
  try {
    return std::make_unique<TcpWorld>(setup);
  } catch (const std::system_error& error) {
    if (!IsOutOfFiles(error.code())) throw;
    throw Error("{}", OutOfFiles(setup.size + kOtherFiles));
  }
}

int ListenOnLoopback(int& port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  if (fd < 0 || bind(fd, any, length) != 0 || listen(fd, SOMAXCONN) != 0 ||
      getsockname(fd, any, &length) != 0) {
    const std::string why = ErrnoWords(errno);
    if (fd >= 0) close(fd);
    throw Error("cannot listen on 127.0.0.1: {}", why);
  }
  port = ntohs(address.sin_port);
  return fd;
}

}  // namespace trireme
