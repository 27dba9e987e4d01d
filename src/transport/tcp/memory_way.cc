#include "transport/tcp/memory_way.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include "base/clock.h"
#include "transport/memory/word_memory.h"
#include "transport/memory/zero_runs.h"
#include "transport/tcp/bulk_host.h"
#include "transport/tcp/bulk_lane.h"
#include "transport/tcp/memory_channel.h"

namespace trireme {
namespace {

using Exchange = MemoryChannel::Exchange;

class TcpMemory final : public WordMemory {
 public:
  explicit TcpMemory(const TcpMemorySetup& setup)
      : setup_(setup), channel_(setup, client_), incarnation_(channel_.incarnation()) {
    way_ = "tcp to " + setup_.meet;
    if (setup_.long_values != LongValues::kConnection) ChooseWay();
  }

  // Over the second connection: it must not keep other threads from their words.
  uint64_t Wait(const Region& region, uint64_t version, Deadline deadline) override {
    {
      std::lock_guard lock(mutex_);
      CheckRegion(region);
    }
    std::lock_guard lock(waits_mutex_);
    if (!waits_) waits_.emplace(setup_, NewNumber());
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - After(0)).count();
      Exchange exchange{.word = {.kind = WordKind::kWait,
                                 .region = uint32_t(region.number),
                                 .number = version,
                                 .a = std::clamp<int64_t>(left, 0, 1000)}};
      try {
        waits_->Say(exchange);
        waits_->Await(exchange);
      } catch (const MemoryRenewed&) {  // perhaps no news to whoever opened the region
        if (waits_->incarnation() != region.incarnation) throw;
        continue;
      }
      CheckReply(exchange.answer);
      if (exchange.answer.version >= version || After(0) >= deadline) {
        return exchange.answer.version;
      }
    }
  }

  std::vector<RegionNote> Notes(const Region& region, uint64_t version, size_t most) override {
    std::lock_guard lock(mutex_);
    CheckRegion(region);
    std::string bytes;
    Ask({.kind = WordKind::kNotes,
         .region = uint32_t(region.number),
         .number = version,
         .length = most},
        &bytes);
    std::vector<RegionNote> notes(bytes.size() / sizeof(RingEntry));
    for (size_t i = 0; i < notes.size(); ++i) {
      RingEntry entry;
      std::memcpy(&entry, bytes.data() + i * sizeof(entry), sizeof(entry));
      notes[i] = NoteOf(entry);
    }
    return notes;
  }

  bool Lock(const Region& region, Deadline deadline) override {
    for (double pause_s = 0.001;; pause_s = std::min(2 * pause_s, 0.02)) {
      {
        std::lock_guard lock(mutex_);
        CheckRegion(region);
        if (Ask({.kind = WordKind::kLock, .region = uint32_t(region.number)}).value != 0) {
          return true;
        }
      }
      if (After(0) >= deadline) return false;
      Pause(deadline, pause_s);
    }
  }
  void Unlock(const Region& region) override {
    std::lock_guard lock(mutex_);
    CheckRegion(region);
    Ask({.kind = WordKind::kUnlock, .region = uint32_t(region.number)});
  }

  uint64_t incarnation() const override { return incarnation_; }
  std::string way() const override { return way_; }

 protected:
  Region Reach(std::string_view name, const Word& word) override {
    std::lock_guard lock(mutex_);
    const Reply answer = Ask(word);
    return answer.region == kNoRegion ? Region{} : Keep(name, answer);
  }

  Ticket GetBytes(const Region& region, RegionType type, uint64_t offset,
                  std::span<std::byte> values, uint64_t* version) override {
    std::lock_guard lock(mutex_);
    CheckRegion(region);
    const uint64_t length = values.size() / ValueBytes(type);
    CheckPlace(names_[size_t(region.number)], region.type, region.length, type, offset, length);
    const Word word{.kind = WordKind::kGet,
                    .type = type,
                    .region = uint32_t(region.number),
                    .offset = offset,
                    .length = length};
    received_ += values.size();
    if (lane_ && values.size() >= kLeastBulk) {
      const uint64_t found = lane_->Read(word, values);
      if (version) *version = found;
      return {};
    }
    auto pending = std::make_unique<Pending>(*this, version);
    pending->exchange.word = word;
    pending->exchange.into = values;
    return Begin(std::move(pending));
  }

  Ticket Change(const Region& region, const Word& word, std::span<const std::byte> values,
                uint64_t* version, const MemoryGuard* guard) override {
    std::lock_guard lock(mutex_);
    if (guard) CheckRegion(guard->region);
    auto pending = std::make_unique<Pending>(*this, version);
    if (lane_ && values.size() >= kLeastBulk) {
      CheckChange(region, word);
      lane_->Write(word, values);
      pending->exchange.word = Numbered(region, word);
      pending->exchange.word.runs = kByBulk;
      sent_ += values.size();
      return Begin(std::move(pending));
    }
    pending->exchange.word = Numbered(region, word);
    if (word.kind == WordKind::kAccumulate) pending->packed = PackZeros(FloatsOf(values));
    if (pending->packed) {
      pending->exchange.word.runs = pending->packed->runs;
      values = pending->packed->bytes;
    }
    pending->exchange.values = values;
    sent_ += values.size();
    return Begin(std::move(pending));
  }

  int64_t Count(const Region& region, const Word& word) override {
    std::lock_guard lock(mutex_);
    return Ask(Numbered(region, word)).value;
  }

 private:
  struct Pending final : Transfer {
    Pending(TcpMemory& of, uint64_t* where) : memory(of), version(where) {}
    void Wait() override {
      std::lock_guard lock(memory.mutex_);
      memory.Await(exchange);
      CheckReply(exchange.answer);
      if (version) *version = exchange.answer.version;
    }
    void Finish() noexcept override {
      try {
        std::lock_guard lock(memory.mutex_);
        memory.Await(exchange);
        if (version && exchange.answer.verdict == Verdict::kDone)
          *version = exchange.answer.version;
      } catch (const std::exception&) {  // whoever waits hears of it
      }
      delete this;
    }
    TcpMemory& memory;
    uint64_t* const version;
    Exchange exchange;
    std::optional<PackedZeros> packed;  // what it sends, if not all values
  };

  static std::span<const float> FloatsOf(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
  }

  static void Pause(Deadline deadline, double seconds) {
    std::this_thread::sleep_until(std::min(deadline, After(seconds)));
  }
  [[noreturn]] void Renewed() const {
    throw MemoryRenewed("the memory box at {} came back without its contents", setup_.meet);
  }
  void CheckRegion(const Region& region) const {
    if (region.number < 0 || size_t(region.number) >= names_.size()) {
      throw Error("region {} was not opened in this memory", region.number);
    }
    if (region.incarnation != channel_.incarnation()) Renewed();
  }
  Region Keep(std::string_view name, const Reply& answer) {
    if (answer.region >= kMostRegions) throw PeerLost("the memory box numbers regions wrongly");
    if (names_.size() <= answer.region) names_.resize(answer.region + 1);
    names_[answer.region] = name;
    return {int(answer.region), answer.type, answer.length, channel_.incarnation()};
  }

  void CheckChange(const Region& region, const Word& word) const {
    CheckRegion(region);
    CheckPlace(names_[size_t(region.number)], region.type, region.length, word.type, word.offset,
               word.length);
  }
  Word Numbered(const Region& region, Word word) {
    CheckChange(region, word);
    word.number = ++changes_;
    return word;
  }

  Reply Ask(const Word& word, std::string* text = nullptr) {
    const Reply answer = AskAnything(word, {}, text);
    CheckReply(answer);
    return answer;
  }
  Reply AskAnything(const Word& word, std::span<const std::byte> values, std::string* text) {
    Exchange exchange{.word = word, .values = values, .text = text};
    Say(exchange);
    Await(exchange);
    return exchange.answer;
  }

  void ChooseWay() {
    const bool must = setup_.long_values == LongValues::kBulk;
    std::string provider;
    Ask({.kind = WordKind::kWays}, &provider);
    if (provider.empty()) {
      if (!must) return;
      throw Error(
          "the memory box at {} offers no fabric (trireme memory-box --fabric PROVIDER; "
          "transport.memory_way)",
          setup_.meet);
    }
    try {
      lane_.emplace(
          provider, setup_.open_bulk, channel_,
          [this](const Word& word, std::span<const std::byte> values, std::string* text) {
            return AskAnything(word, values, text);
          },
          setup_.timeout_s);
    } catch (const MemoryRenewed&) {
      throw;
    } catch (const Error& error) {
      if (must) throw;
      way_ +=
          fmt::format("; fabric ({}) is offered and cannot be used: {}", provider, error.what());
      return;
    }
    const std::string fabric = fmt::format("fabric ({})", provider);
    const std::string bulk_way = fmt::format("{} to {}", fabric, setup_.meet);
    if (must) {
      way_ = bulk_way;
      return;
    }
    const auto [wire, bulk] = MeasureWays();
    if (bulk > wire) {
      way_ = fmt::format("{}: {:.2f} GB/s, by tcp {:.2f}", bulk_way, bulk * 1e-9, wire * 1e-9);
    } else {
      lane_->Close();
      lane_.reset();
      way_ += fmt::format(": {:.2f} GB/s, by {} {:.2f}", wire * 1e-9, fabric, bulk * 1e-9);
    }
  }

  // Bytes per second of either: the best of a few, in turns.
  std::pair<double, double> MeasureWays() {
    constexpr int kTurns = 5;
    std::string text;
    std::vector<std::byte> bytes(kBulkGreeting);
    double wire_s = 1e9, bulk_s = 1e9;
    for (int turn = 0; turn < kTurns; ++turn) {
      const Stopwatch by_wire;
      Ask({.kind = WordKind::kProbe, .length = kBulkGreeting}, &text);
      wire_s = std::min(wire_s, by_wire.seconds());
      const Stopwatch by_bulk;
      lane_->Probe(bytes);
      bulk_s = std::min(bulk_s, by_bulk.seconds());
    }
    return {kBulkGreeting / wire_s, kBulkGreeting / bulk_s};
  }
  void Say(Exchange& exchange) {
    try {
      channel_.Say(exchange);
    } catch (const MemoryRenewed&) {
      Restart();
      throw;
    }
  }
  void Await(Exchange& exchange) {
    try {
      channel_.Await(exchange);
    } catch (const MemoryRenewed&) {
      Restart();
      throw;
    }
  }
  void Restart() {  // the box knows nothing of this client
    incarnation_ = channel_.incarnation();
    changes_ = 0;
  }

  Ticket Begin(std::unique_ptr<Pending> pending) {
    Say(pending->exchange);
    return Ticket(pending.release());
  }

  const TcpMemorySetup setup_;
  std::mutex mutex_;  // guards the next four
  MemoryChannel channel_;
  uint64_t changes_ = 0;
  std::vector<std::string> names_;  // by number
  std::optional<BulkLane> lane_;    // of the way `fabric`
  std::string way_;
  std::atomic<uint64_t> incarnation_;
  std::mutex waits_mutex_;
  std::optional<MemoryChannel> waits_;  // guarded by waits_mutex_
};

}  // namespace

std::unique_ptr<Memory> ConnectTcp(const TcpMemorySetup& setup) {
  return std::make_unique<TcpMemory>(setup);
}

std::string FetchMemoryStatus(const TcpMemorySetup& setup) {
  MemoryChannel channel(setup, NewNumber());
  std::string text;
  Exchange exchange{.word = {.kind = WordKind::kStatus}, .text = &text};
  channel.Say(exchange);
  channel.Await(exchange);
  CheckReply(exchange.answer);
  return text;
}

}  // namespace trireme
