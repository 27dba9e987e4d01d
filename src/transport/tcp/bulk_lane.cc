#include "transport/tcp/bulk_lane.h"

#include <algorithm>
#include <cstring>
#include <thread>

namespace trireme {
namespace {

constexpr double kFirst_s = 30;  // for ends to find each other: a network may let nothing through

}  // namespace

BulkLane::BulkLane(std::string provider, OpenBulk open, MemoryChannel& channel, Ask ask,
                   double timeout_s)
    : provider_(std::move(provider)),
      open_(std::move(open)),
      channel_(channel),
      ask_(std::move(ask)),
      timeout_s_(timeout_s) {
  Retry(std::min(timeout_s_, kFirst_s), [] {});
}

BulkLane::~BulkLane() = default;

void BulkLane::Open() {
  std::string text;
  if (!channel_.connected()) ask_({.kind = WordKind::kWays}, {}, &text);  // connects again
  auto end = open_(provider_, channel_.LocalHost());
  const std::string own = end->address();
  const Word word{.kind = WordKind::kBulk, .length = own.size()};
  CheckReply(ask_(word, std::as_bytes(std::span(own)), &text));
  if (text.size() < sizeof(BulkPlace)) throw Error("the memory box sent no address of an end");
  std::memcpy(&greeting_, text.data(), sizeof(greeting_));
  end->Reach(text.substr(sizeof(BulkPlace)));
  uint64_t incarnation = 0;
  const auto goes_on = [this] { return GoesOn(); };
  end->Read(std::as_writable_bytes(std::span(&incarnation, 1)), greeting_,
            {goes_on, std::min(timeout_s_, kFirst_s)});
  if (incarnation != channel_.incarnation()) throw BulkBroken("another box answers");
  end_ = std::move(end);
}

template <class Fn>
void BulkLane::Retry(double seconds, const Fn& fn) {
  const Deadline limit = After(seconds);
  for (double pause_s = 0.01;; pause_s = std::min(2 * pause_s, 0.5)) {
    try {
      if (!end_) Open();
      return fn();
    } catch (const BulkBroken& error) {
      end_.reset();
      if (After(pause_s) >= limit) {
        throw PeerLost("the way {} to the memory box breaks again and again: {}", provider_,
                       error.what());
      }
    }
    std::this_thread::sleep_for(std::chrono::duration<double>(pause_s));
  }
}

BulkPlace BulkLane::AskPlace(const Word& word, uint64_t* version) {
  std::string text;
  const Reply answer = ask_(word, {}, &text);
  if (answer.verdict == Verdict::kNoBulk) throw BulkBroken("the connection is another one");
  CheckReply(answer);
  BulkPlace place;
  if (text.size() != sizeof(place)) throw Error("the memory box did not say where to go");
  std::memcpy(&place, text.data(), sizeof(place));
  if (version) *version = answer.version;
  return place;
}

void BulkLane::Write(const Word& change, std::span<const std::byte> values) {
  Word word = change;
  word.kind = WordKind::kSlot;
  const auto goes_on = [this] { return GoesOn(); };
  Retry(timeout_s_, [&] { end_->Write(values, AskPlace(word), {goes_on, timeout_s_}); });
}

uint64_t BulkLane::Read(Word get, std::span<std::byte> into) {
  get.runs = kByBulk;
  uint64_t version = 0;
  const auto goes_on = [this] { return GoesOn(); };
  for (bool held = false; !held;) {
    Retry(timeout_s_, [&] {
      end_->Read(into, AskPlace(get, &version), {goes_on, timeout_s_});
      // Where somebody had to change it meanwhile, or the connection is another one: once more.
      const Reply answer = ask_({.kind = WordKind::kRelease}, {}, nullptr);
      if (answer.verdict != Verdict::kNoBulk) CheckReply(answer);
      held = answer.verdict == Verdict::kDone && answer.value != 0;
    });
  }
  return version;
}

void BulkLane::Probe(std::span<std::byte> into) {
  const auto goes_on = [this] { return GoesOn(); };
  Retry(timeout_s_, [&] { end_->Read(into, greeting_, {goes_on, timeout_s_}); });
}

void BulkLane::Close() {
  end_.reset();
  CheckReply(ask_({.kind = WordKind::kBulk}, {}, nullptr));
}

}  // namespace trireme
