#include "transport/tcp/memory_wires.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "base/start_thread.h"
#include "base/text.h"
#include "transport/memory/status.h"
#include "transport/memory/zero_runs.h"

namespace trireme {
namespace {

constexpr double kLongestWait_s = 0.5;  // that one word may wait for a version
constexpr char kSessionEnded[] = "the memory box has ended this client's session";
constexpr double kLook_s = 0.02;    // between looks at whether somebody waits for a held region
constexpr size_t kMostEnd = 1024;   // bytes of an address
constexpr double kHalfAWord_s = 1;  // that keeps others from changing a held region
constexpr double kStuck_s = 0.002;  // a client that takes nothing for so long lets others change

template <class T>
std::span<const std::byte> BytesIn(const T& what) {
  return std::as_bytes(std::span<const T>(&what, 1));
}

}  // namespace

// One client's connection, from the handshake to its end.
class MemoryWires::Connection {
 public:
  Connection(MemoryWires& wires, Socket socket, const Hello& hello)
      : wires_(wires),
        store_(wires.box_.store()),
        client_(hello.incarnation),
        who_(trireme::Name(socket.remote_endpoint())),
        wire_(socket.release()) {}

  void Start(std::shared_ptr<Connection> before) {
    thread_ = StartThread("the thread of a memory client",
                          [this, before = std::move(before)]() mutable { Run(std::move(before)); });
  }
  void Shut() {
    shut_.store(true);
    wire_.Shut();
  }
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  bool over() const { return over_; }  // with the wires' mutex: the thread only ends

 private:
  void Run(std::shared_ptr<Connection> before) {
    if (before) {  // half open, or its thread is about to end: one at a time uses the session
      before->Shut();
      before->Join();
      before.reset();
    }
    std::string why;
    try {
      wire_.NoticeSilence(wires_.box_.setup().timeout_s);
      const auto session = store_.FindSession(client_);
      if (!session) throw PeerLost(kSessionEnded);
      session_ = *session;
      while (ServeWord()) {
      }
    } catch (const WireCut&) {
      if (!shut_.load()) why = "the connection ended in the middle of a word, which is forgotten";
    } catch (const WireBroken&) {  // may come back
    } catch (const std::exception& error) {
      why = error.what();
    }
    if (!why.empty()) {
      store_.Refuse();
      if (wires_.refused_) wires_.refused_(who_, why);
    }
    bulk_.reset();
    wire_.Shut();
    std::lock_guard lock(wires_.mutex_);
    over_ = true;
    // Where the client has come back already, it is not away.
    const auto newest = wires_.connections_.find(client_);
    if (newest == wires_.connections_.end() || newest->second.get() != this) return;
    wires_.away_[client_] = After(wires_.box_.setup().timeout_s);
  }

  // False: it was the last one.
  bool ServeWord() {
    Word word;
    while (bulk_ && bulk_->holds() && !wire_.AwaitInput(kLook_s)) bulk_->GiveWay();
    const bool holds = bulk_ && bulk_->holds();
    wire_.Read(std::as_writable_bytes(std::span(&word, 1)),
               holds ? After(kHalfAWord_s) : Wire::kNever);
    // A change would wait for its own reader.
    if (holds && word.kind != WordKind::kRelease) bulk_->LetGo();
    switch (word.kind) {
      case WordKind::kPut:
      case WordKind::kAccumulate:
        if (word.runs == kByBulk) {
          Send(bulk_ ? bulk_->Change(word) : store_.Do(session_, word));
        } else {
          if (bulk_) bulk_->ForgetSlot();
          TakeValues(word);
        }
        break;
      case WordKind::kGet:
        if (word.runs == kByBulk) {
          AnswerBulk([&] { return bulk_->Hold(word); });
        } else {
          GiveValues(word);
        }
        break;
      case WordKind::kSlot:
        if (wires_.bulk_.provider.empty()) throw Error("unknown word {}", uint32_t(word.kind));
        AnswerBulk([&] { return bulk_->GiveSlot(word); });
        break;
      case WordKind::kRelease:
        AnswerBulk([&] { return BulkHost::Answer{bulk_->Release(), ""}; });
        break;
      case WordKind::kWays:
        Send({.length = wires_.bulk_.provider.size()},
             std::as_bytes(std::span(wires_.bulk_.provider)));
        break;
      case WordKind::kBulk:
        OpenBulkEnd(word);
        break;
      case WordKind::kProbe: {
        const auto bytes = std::min<size_t>(word.length, wires_.greeting_.size());
        Send({.length = bytes}, std::span(wires_.greeting_).first(bytes));
        break;
      }
      case WordKind::kWait:
        Send(AwaitVersion(word));
        break;
      case WordKind::kNotes:
        GiveNotes(word);
        break;
      case WordKind::kStatus: {
        const std::string text = StatusText(store_.Look());
        Send({.length = text.size()}, std::as_bytes(std::span(text)));
        break;
      }
      case WordKind::kLeave:
        bulk_.reset();
        store_.EndSession(session_);
        return false;
      case WordKind::kCreate:
      case WordKind::kOpen:
      case WordKind::kLock:
      case WordKind::kUnlock:
      case WordKind::kFetchAdd:
      case WordKind::kCompareSwap:
        Send(store_.Do(session_, word));
        break;
      default:
        throw Error("unknown word {}", uint32_t(word.kind));
    }
    return true;
  }

  void Send(const Reply& answer, std::span<const std::byte> rest = {}) {
    wire_.Write(BytesIn(answer), rest, After(wires_.box_.setup().timeout_s));
  }
  void Refuse(const Error& error) {
    store_.Refuse();
    Reply answer{.verdict = Verdict::kRefused};
    SetText(answer, error.what());
    Send(answer);
  }

  void AnswerBulk(FunctionRef<BulkHost::Answer()> answer) {
    if (!bulk_) return Send({.verdict = Verdict::kNoBulk});
    try {
      const BulkHost::Answer made = answer();
      Send(made.reply, std::as_bytes(std::span(made.rest)));
    } catch (const WireBroken&) {
      throw;
    } catch (const Error& error) {
      Refuse(error);
    }
  }

  void OpenBulkEnd(const Word& word) {
    if (wires_.bulk_.provider.empty() || word.length > kMostEnd) {
      throw Error("an address of {} bytes for an end of its own", word.length);
    }
    std::string address(word.length, '\0');
    ReadRest(std::as_writable_bytes(std::span(address)));
    bulk_.reset();
    if (address.empty()) return Send({});
    try {
      bulk_.emplace(store_, session_, client_,
                    wires_.bulk_.open(wires_.bulk_.provider, wire_.LocalHost()), address,
                    wires_.greeting_, wires_.box_.setup().timeout_s);
    } catch (const Error& error) {
      return Refuse(error);
    }
    AnswerBulk([&] { return bulk_->Greet(); });
  }

  // Straight into the slot; what does not fit there is read and forgotten, so that the next word
  // is found.
  void TakeValues(const Word& word) {
    const RegionType type = word.kind == WordKind::kAccumulate ? RegionType::kF32 : word.type;
    if (word.length > store_.image().bytes() / ValueBytes(type)) {
      throw Error("a change of {} values is more than the box has room for", word.length);
    }
    const uint64_t bytes = word.length * ValueBytes(type);
    const std::vector<ZeroRun> runs = ReadRuns(word);
    uint64_t left = runs.empty() ? bytes : CheckZeroRuns(runs, word.length) * sizeof(float);
    try {
      const auto slot = store_.SlotFor(session_, word, bytes);
      ReadRest(slot.last(left));
      if (!runs.empty()) {
        SpreadZeros(runs, {reinterpret_cast<float*>(slot.data()), size_t(word.length)});
      }
      Send(store_.Do(session_, word));
    } catch (const WireBroken&) {
      throw;
    } catch (const Error& error) {
      std::byte nowhere[4096];
      for (; left > 0; left -= std::min<uint64_t>(left, sizeof(nowhere))) {
        ReadRest(std::span(nowhere).first(std::min<uint64_t>(left, sizeof(nowhere))));
      }
      Reply answer = store_.Do(session_, word);  // refuses it, too, and counts it
      SetText(answer, error.what());
      Send(answer);
    }
  }

  std::vector<ZeroRun> ReadRuns(const Word& word) {
    if (word.kind != WordKind::kAccumulate) return {};
    if (word.runs > MostZeroRuns(word.length)) {
      throw Error("an add of {} values has {} runs of zeros", word.length, word.runs);
    }
    std::vector<ZeroRun> runs(word.runs);
    ReadRest(std::as_writable_bytes(std::span(runs)));
    return runs;
  }

  // What belongs to a word.
  void ReadRest(std::span<std::byte> into) {
    try {
      wire_.Read(into, After(wires_.box_.setup().timeout_s));
    } catch (const WireBroken& error) {
      throw WireCut("{}", error.what());
    }
  }

  // From where the region lies, while nobody waits to change it; from a copy of the rest when
  // somebody does.
  void GiveValues(const Word& word) {
    Reply answer;
    std::optional<ReadLock> read;
    std::span<const std::byte> values;
    try {
      const RegionRecord& region = store_.Known(word.region);
      CheckPlace(NameOf(region), region.type, region.length, word.type, word.offset, word.length);
      const uint64_t size = ValueBytes(region.type);
      read.emplace(store_.image(), session_, client_, word.region,
                   After(wires_.box_.setup().timeout_s));
      answer.length = word.length * size;
      answer.version = region.version.load(std::memory_order_acquire);
      values = {store_.image().at(region.data) + word.offset * size, size_t(answer.length)};
    } catch (const Error& error) {
      return Refuse(error);
    }
    std::vector<std::byte> rest;
    if (values.size() <= kShort) {  // in one packet
      rest.assign(values.begin(), values.end());
      read.reset();
      return Send(answer, rest);
    }
    Deadline deadline = After(wires_.box_.setup().timeout_s);
    wire_.Write(BytesIn(answer), {}, deadline);
    while (!values.empty()) {
      const size_t sent = wire_.WriteSome(values.first(std::min(values.size(), kBurst)), kStuck_s);
      values = values.subspan(sent);
      if (sent > 0) {
        deadline = After(wires_.box_.setup().timeout_s);
      } else if (After(0) >= deadline) {
        throw WireBroken("took nothing in time");
      }
      if (read && read->Wanted() && !values.empty()) {
        rest.assign(values.begin(), values.end());
        values = rest;
        read.reset();
      }
    }
  }

  Reply AwaitVersion(const Word& word) {
    try {
      RegionRecord& region = store_.Known(word.region);
      const double wait_s = std::clamp(double(word.a) * 1e-3, 0.0, kLongestWait_s);
      for (const Deadline deadline = After(wait_s);;) {
        const uint32_t count = region.changed.Count();
        const uint64_t version = region.version.load(std::memory_order_acquire);
        if (version >= word.number || After(0) >= deadline) return {.version = version};
        region.changed.Wait(count, deadline, 0);
      }
    } catch (const Error& error) {
      Reply answer{.verdict = Verdict::kRefused};
      SetText(answer, error.what());
      return answer;
    }
  }

  void GiveNotes(const Word& word) {
    std::vector<RingEntry> entries;
    try {
      const RegionRecord& region = store_.Known(word.region);
      ReadLock read(store_.image(), session_, client_, word.region,
                    After(wires_.box_.setup().timeout_s));
      const uint64_t newest = region.version.load(std::memory_order_acquire);
      CheckKept(NameOf(region), word.number, newest);
      const uint64_t most = std::min(word.length, kKeptNotes);
      for (uint64_t v = word.number + 1; v <= newest && entries.size() < most; ++v) {
        entries.push_back(store_.image().ring(region, v));
      }
    } catch (const Error& error) {
      return Refuse(error);
    }
    Send({.length = entries.size()}, std::as_bytes(std::span(entries)));
  }

  static constexpr size_t kBurst = 1 << 20, kShort = 16 << 10;
  MemoryWires& wires_;
  MemoryStore& store_;
  const uint64_t client_;
  const std::string who_;
  Wire wire_;
  std::atomic<bool> shut_ = false;  // by this side
  bool over_ = false;               // guarded by the wires' mutex
  uint32_t session_ = 0;
  std::optional<BulkHost> bulk_;
  std::jthread thread_;
};

MemoryWires::MemoryWires(MemoryBox& box, Refused refused, BulkOffer bulk)
    : box_(box), refused_(std::move(refused)), bulk_(std::move(bulk)) {
  if (!bulk_.provider.empty()) {
    const uint64_t own = incarnation();
    greeting_.resize(kBulkGreeting);
    std::memcpy(greeting_.data(), &own, sizeof(own));
  }
  // Of a box that was killed: its clients have as much time to come back as others.
  for (const SessionRecord& session : box_.store().image().header().sessions) {
    if (session.client.load() != 0 && session.pid.load() == 0) {
      away_[session.client.load()] = After(box_.setup().timeout_s);
    }
  }
  sweeper_ = StartThread("the thread that ends sessions",
                         [this](std::stop_token stop) { Sweep(std::move(stop)); });
}

MemoryWires::~MemoryWires() {
  sweeper_.request_stop();
  sweeper_.join();
  std::map<uint64_t, std::shared_ptr<Connection>> connections;
  {
    std::lock_guard lock(mutex_);
    connections.swap(connections_);
  }
  for (auto& [client, connection] : connections) connection->Shut();
  for (auto& [client, connection] : connections) connection->Join();
}

uint64_t MemoryWires::incarnation() const { return box_.store().image().header().incarnation; }

std::string MemoryWires::Judge(const Hello& hello) {
  if (hello.incarnation == 0) return "a memory client needs a number";
  if (box_.store().FindSession(hello.incarnation)) return "";
  const bool comes_back = hello.from == 1 && hello.expected == incarnation();
  if (comes_back) return kSessionEnded;
  // Before the client hears that it is let in: a box that is killed now knows it afterwards.
  try {
    box_.store().BeginSession(hello.incarnation);
  } catch (const Error& error) {
    return error.what();
  }
  std::lock_guard lock(mutex_);
  away_[hello.incarnation] = After(box_.setup().timeout_s);
  return "";
}

void MemoryWires::Serve(Socket socket, const Hello& hello) {
  auto connection = std::make_shared<Connection>(*this, std::move(socket), hello);
  std::lock_guard lock(mutex_);
  away_.erase(hello.incarnation);
  auto& place = connections_[hello.incarnation];
  const std::shared_ptr<Connection> before = std::exchange(place, connection);
  try {
    connection->Start(before);
  } catch (const std::exception&) {  // no thread for it
    place = before;
    if (!before) connections_.erase(hello.incarnation);
    away_[hello.incarnation] = After(box_.setup().timeout_s);
    throw;
  }
}

void MemoryWires::Sweep(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    changed_.wait_for(lock, stop, std::chrono::milliseconds(100), [] { return false; });
    const Deadline now = After(0);
    for (auto it = away_.begin(); it != away_.end();) {
      const uint64_t client = it->first;
      const auto session = box_.store().FindSession(client);
      if (session && now < it->second) {
        ++it;
        continue;
      }
      if (const auto found = connections_.find(client); found != connections_.end()) {
        if (!found->second->over()) {  // of a session that is gone: its end needs the mutex
          found->second->Shut();
          ++it;
          continue;
        }
        found->second->Join();
        connections_.erase(found);
      }
      if (session) box_.store().EndSession(*session);
      it = away_.erase(it);
    }
  }
}

}  // namespace trireme
