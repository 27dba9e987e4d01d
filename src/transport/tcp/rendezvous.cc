#include "transport/tcp/rendezvous.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/machine.h"
#include "base/text.h"
#include "transport/open_files.h"
#include "transport/tcp/endpoint.h"
#include "transport/tcp/wire.h"

namespace trireme {
namespace {

constexpr size_t kMaxLine = 400;  // of a rank in the table
// While ranks are missing, nothing is sent: a machine that dies meanwhile is noticed after so long,
// and so is which of two processes that say to be the same rank has been left behind.
constexpr double kSilentSeconds = 4;
constexpr double kContestSeconds = 8;

// As a word of the table that all get.
std::string HostWord() {
  std::string text = HostName();
  if (text.empty()) return "?";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c <= ' ' || c > '~'; }, '?');
  return text.substr(0, 100);
}

// "ADDRESS PORT INCARNATION HOST", as a report and as a row of the table.
struct Row {
  asio::ip::tcp::endpoint endpoint;
  uint64_t incarnation = 0;
  std::string host;
};

std::string Write(const Row& row) {
  return fmt::format("{} {} {} {}", row.endpoint.address().to_string(), row.endpoint.port(),
                     row.incarnation, row.host);
}

Row ReadRow(const std::string& line) {
  const std::vector<std::string> words = Split(line, ' ');
  std::error_code error;
  if (words.size() == 4) {
    const auto address = asio::ip::make_address(words[0], error);
    const auto port = ParseNumber<uint16_t>(words[1]);
    const auto incarnation = ParseNumber<uint64_t>(words[2]);
    if (!error && port && incarnation && *port > 0 && *incarnation > 0) {
      return {{address, *port}, *incarnation, words[3]};
    }
  }
  throw Refused("a rank's report is unreadable");
}

// "rank 1 (node2)", "ranks 2, 3 (node2), 4, 5 (node3)"; of many the first.
std::string WithHosts(const std::vector<int>& ranks, const TcpSetup& setup) {
  constexpr size_t kNamed = 16;
  const auto host = [&](size_t i) {
    const size_t rank = size_t(ranks[i]);
    return rank < setup.host_of_rank.size() ? setup.host_of_rank[rank] : "";
  };
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  const size_t named = std::min(ranks.size(), kNamed);
  for (size_t i = 0; i < named; ++i) {
    text += fmt::format("{}{}", i ? ", " : " ", ranks[i]);
    const bool last_there = i + 1 == named || host(i + 1) != host(i);
    if (last_there && !host(i).empty()) text += fmt::format(" ({})", host(i));
  }
  if (named < ranks.size()) text += fmt::format(" and {} more", ranks.size() - named);
  return text;
}

}  // namespace

Rendezvous::Rendezvous(asio::io_context& io, const TcpSetup& setup, uint64_t incarnation,
                       std::function<void(int, Socket)> attach)
    : io_(io),
      setup_(setup),
      incarnation_(incarnation),
      attach_(std::move(attach)),
      deadline_(After(setup.join_s)),
      members_(size_t(setup.size)),
      changed_(io.get_executor()) {}

std::string Rendezvous::Fault(std::string words) {
  if (fault_.empty()) fault_ = words;
  changed_.Notify();
  return words;
}

void Rendezvous::Fail(const std::string& what) {
  if (!done_) Fault(what);
}

std::string Rendezvous::Judge(const Hello& hello) {
  const bool meets = hello.purpose == Purpose::kMeet;
  if (meets != (setup_.rank == 0))
    return fmt::format("{} is not the one that ranks report to", Me());
  const bool possible = hello.size == setup_.size && hello.to == setup_.rank &&
                        hello.from > setup_.rank && hello.from < setup_.size;
  if (!meets) {
    if (possible && hello.expected == incarnation_ && !members_[size_t(hello.from)].attached) {
      return "";
    }
    return fmt::format("{} is not the process that rank {} is looking for", Me(), hello.from);
  }
  if (!fault_.empty()) return fault_;
  // Where one of them was lost and comes back, the others find out, and come as well.
  if (done_) throw Unanswered("the {} ranks of this run have already met", setup_.size);
  // One that knows the secret and was started in another way: the run cannot become right.
  if (hello.size != setup_.size) {
    return Fault(fmt::format("rank {} was started in a world of {}, rank 0 in a world of {}",
                             hello.from, hello.size, setup_.size));
  }
  if (!possible) {
    return Fault(
        fmt::format("rank {} reported, but the world has {} ranks", hello.from, setup_.size));
  }
  Member& member = members_[size_t(hello.from)];
  if (member.claimed != 0 && member.claimed != hello.incarnation) {
    // A process that ends hangs up; one whose machine has died does not.
    const bool moved = member.address != hello.address;
    if (!moved || (member.contested && After(0) >= *member.contested)) {
      return Fault(fmt::format("rank {} of {} was started twice", hello.from, setup_.size));
    }
    if (!member.contested) member.contested = After(kContestSeconds);
    throw Unanswered("another rank {} is here, from {}", hello.from, member.address.to_string());
  }
  member.claimed = hello.incarnation;
  member.address = hello.address;
  return "";
}

// It may be started again.
void Rendezvous::Release(Member& member) {
  member.socket.reset();
  member.contested.reset();
  member.claimed = member.incarnation = 0;
}

asio::awaitable<void> Rendezvous::Welcome(Listener::Guest guest) {
  if (guest.hello.purpose == Purpose::kPair) {
    Attach(guest.hello.from, std::move(guest.socket));
    co_return;
  }
  Member& member = members_[size_t(guest.hello.from)];
  try {
    const Watch watch(guest.socket, After(kHandshakeSeconds));
    const Row row = ReadRow(co_await ReadText(guest.socket, kMaxLine));
    member.endpoint = row.endpoint;
    member.host = row.host;
    // Bound to all addresses: the one it came from is as good as any.
    if (row.endpoint.address().is_unspecified()) {
      member.endpoint.address(guest.socket.remote_endpoint().address());
    }
    if (!fault_.empty()) co_await WriteText(guest.socket, fault_, true);
  } catch (const std::exception&) {
    if (!done_ && member.incarnation == 0) Release(member);
    co_return;  // it tries again
  }
  if (done_) co_return;
  NoticeSilence(guest.socket.native_handle(), kSilentSeconds);
  member.incarnation = guest.hello.incarnation;
  member.socket = std::move(guest.socket);
  changed_.Notify();
  co_await AwaitHangUp(guest.hello.from);
}

// Whoever has reported says nothing more until it hears from here. If it goes before, it may be
// started again.
asio::awaitable<void> Rendezvous::AwaitHangUp(int rank) {
  Member& member = members_[size_t(rank)];
  const int visit = ++member.visits;
  std::error_code ignored;
  co_await member.socket->async_wait(Socket::wait_read,
                                     asio::redirect_error(asio::use_awaitable, ignored));
  if (!done_ && member.visits == visit) Release(member);
}

asio::awaitable<void> Rendezvous::Run(const Listener& listener) {
  if (setup_.rank == 0) {
    co_await Gather(listener);
  } else {
    co_await Report(listener);
    co_await ConnectPairs();
  }
  done_ = true;
}

asio::awaitable<void> Rendezvous::Gather(const Listener& listener) {
  members_[0].incarnation = incarnation_;
  members_[0].host = HostWord();
  members_[0].endpoint = listener.local();
  // Where two say to be the same rank, the one that was first may be gone: see Judge.
  const auto in_doubt = [](const Member& m) {
    return m.contested && After(0) < *m.contested + std::chrono::seconds(2);
  };
  const auto all_here = [&] {
    return std::all_of(members_.begin(), members_.end(),
                       [&](const Member& m) { return m.incarnation != 0 && !in_doubt(m); });
  };
  while (fault_.empty() && !all_here()) {
    if (After(0) >= deadline_) {
      std::string words = fmt::format("{} missing at {} after {:g} s (transport.join_s)", Missing(),
                                      setup_.meet, setup_.join_s);
      if (!listener.last_refusal().empty()) words += "; refused " + listener.last_refusal();
      Fault(words);
      break;
    }
    const bool doubt = std::any_of(members_.begin(), members_.end(), in_doubt);
    co_await changed_.Wait(doubt ? std::min(deadline_, After(1)) : deadline_);
  }
  done_ = true;
  if (!fault_.empty()) {
    co_await TellAll(fault_, true);
    co_await changed_.Wait(After(0.1));  // those who are about to report hear it, too
    throw Error("{}: {}", Me(), fault_);
  }
  co_await TellAll(Table(), false);
  for (int r = 1; r < setup_.size; ++r) {
    Socket& socket = *members_[size_t(r)].socket;
    NoticeSilence(socket.native_handle(), 0);  // the pair has a patience of its own
    Attach(r, std::move(socket));
  }
}

asio::awaitable<void> Rendezvous::TellAll(std::string text, bool refusal) {
  for (Member& member : members_) {
    if (!member.socket) continue;
    try {
      const Watch watch(*member.socket, After(kHandshakeSeconds));
      co_await WriteText(*member.socket, text, refusal);
    } catch (const std::exception&) {  // it is gone: found out when its pair is used
    }
  }
}

std::string Rendezvous::Table() const {
  std::string text;
  for (const Member& m : members_) text += Write({m.endpoint, m.incarnation, m.host}) + "\n";
  return text;
}

void Rendezvous::TakeTable(const std::string& text) {
  const std::vector<std::string> lines = Split(text, '\n');
  if (lines.size() != members_.size() + 1) throw Refused("the table of ranks is unreadable");
  for (size_t r = 0; r < members_.size(); ++r) {
    const Row row = ReadRow(lines[r]);
    if (r > 0) members_[r].endpoint = row.endpoint;
    members_[r].incarnation = row.incarnation;
    members_[r].host = row.host;
  }
}

asio::awaitable<void> Rendezvous::Report(const Listener& listener) {
  const Hello hello = {Purpose::kMeet, setup_.size, setup_.rank, 0, incarnation_};
  const std::string name = fmt::format("rank 0 at {}", setup_.meet);
  LoopEvent pause(io_.get_executor());
  for (;;) {
    Socket socket = co_await DialUntil(setup_.meet, hello, name);
    std::string broken;
    try {
      // Rank 0 has the last word about who is missing.
      const Watch watch(socket, deadline_ + std::chrono::seconds(5));
      NoticeSilence(socket.native_handle(), kSilentSeconds);
      const std::string row = Write({listener.local(), incarnation_, HostWord()});
      co_await WriteText(socket, row);
      reported_ = true;
      TakeTable(co_await ReadText(socket, kMaxLine * members_.size()));
      NoticeSilence(socket.native_handle(), 0);
      members_[0].endpoint = socket.remote_endpoint();
    } catch (const Refused& error) {
      throw Error("{}: {}", Me(), error.what());
    } catch (const std::system_error& error) {
      broken = WhyBroken(error);
    }
    if (broken.empty()) {
      Attach(0, std::move(socket));
      co_return;
    }
    // It may be started again, here or elsewhere.
    reported_ = false;
    if (After(0) >= deadline_) {
      throw Error("{}: {} went away while ranks were missing: {}", Me(), name, broken);
    }
    co_await pause.Wait(After(0.1));
  }
}

asio::awaitable<void> Rendezvous::ConnectPairs() {
  for (int r = 1; r < setup_.rank; ++r) {
    const Member& member = members_[size_t(r)];
    const Hello hello = {Purpose::kPair, setup_.size,       setup_.rank, r,
                         incarnation_,   member.incarnation};
    const std::string name =
        fmt::format("rank {} at {} ({})", r, Name(member.endpoint), member.host);
    Attach(r, co_await DialUntil(Name(member.endpoint), hello, name));
  }
  const auto all_attached = [&] {
    return std::all_of(members_.begin(), members_.end(), [&](const Member& m) {
      return m.attached || &m == &members_[size_t(setup_.rank)];
    });
  };
  while (!all_attached()) {
    if (!fault_.empty()) throw Error("{}", fault_);
    if (After(0) >= deadline_) {
      throw Error("{}: {} missing after {:g} s (transport.join_s)", Me(), Missing(), setup_.join_s);
    }
    co_await changed_.Wait(deadline_);
  }
}

asio::awaitable<Socket> Rendezvous::DialUntil(std::string meet, Hello hello, std::string name) {
  LoopEvent pause(io_.get_executor());
  std::string last;
  for (double wait = 0.01;; wait = std::min(2 * wait, 0.5)) {
    try {
      uint64_t found = 0;
      Socket socket = co_await DialName(meet, hello, setup_.secret, &found);
      co_return socket;
    } catch (const Refused& error) {
      throw Error("{}: refused by {}: {}", Me(), name, error.what());
    } catch (const Unanswered& error) {
      last = error.what();
      unresolved_ = dynamic_cast<const Unresolved*>(&error) != nullptr;
    } catch (const std::system_error&) {
      throw Error("{}", OutOfFiles(setup_.size + kOtherFiles));
    }
    if (!fault_.empty()) throw Error("{}", fault_);
    if (After(wait) >= deadline_) {
      throw Error("{}: cannot reach {} within {:g} s (transport.join_s): {}", Me(), name,
                  setup_.join_s, last);
    }
    co_await pause.Wait(After(wait));
  }
}

void Rendezvous::Attach(int rank, Socket socket) {
  members_[size_t(rank)].attached = true;
  attach_(rank, std::move(socket));
  changed_.Notify();
}

std::vector<int> Rendezvous::Absent() const {
  std::vector<int> ranks;
  for (int r = 0; r < setup_.size; ++r) {
    const Member& member = members_[size_t(r)];
    const bool here = setup_.rank == 0 ? member.incarnation != 0 : member.attached;
    if (r != setup_.rank && !here) ranks.push_back(r);
  }
  return ranks;
}

std::string Rendezvous::Missing() const {
  const std::vector<int> ranks = Absent();
  return fmt::format("{} {} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "),
                     ranks.size() == 1 ? "is" : "are");
}

std::string Rendezvous::Waiting() const {
  const std::string limit = fmt::format("at most {:g} s (transport.join_s)", setup_.join_s);
  if (setup_.rank == 0) {
    return fmt::format("waiting at {} for {}, {}", setup_.meet, WithHosts(Absent(), setup_), limit);
  }
  if (!members_[0].attached) {
    return reported_
               ? fmt::format("waiting with rank 0 at {} for other ranks, {}", setup_.meet, limit)
               : fmt::format("waiting for rank 0 at {}{}, {}", setup_.meet,
                             unresolved_ ? ", a name without an address so far" : "", limit);
  }
  return fmt::format("waiting for {}, {}", WithHosts(Absent(), setup_), limit);
}

}  // namespace trireme
