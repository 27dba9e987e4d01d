#include "transport/tcp/bulk_host.h"

#include <cstring>

#include "base/start_thread.h"

namespace trireme {
namespace {

constexpr double kServe_s = 0.05;   // between looks at whether anybody transfers
constexpr size_t kMostShared = 64;  // shared at a time

std::string BytesOf(const BulkPlace& place) {
  return {reinterpret_cast<const char*>(&place), sizeof(place)};
}

}  // namespace

BulkHost::BulkHost(MemoryStore& store, uint32_t session, uint64_t client,
                   std::unique_ptr<BulkEnd> end, const std::string& client_end,
                   std::span<std::byte> greeting, double timeout_s)
    : store_(store),
      session_(session),
      client_(client),
      timeout_s_(timeout_s),
      end_(std::move(end)),
      greeting_(end_->Share(greeting, false)) {
  end_->Reach(client_end);
  thread_ = StartThread("the thread of a client's long values",
                        [this](const std::stop_token& stop) { Serve(stop); });
}

BulkHost::~BulkHost() {
  thread_.request_stop();
  end_->Wake();
  thread_.join();
}

// What cannot be served is noticed by the client, which waits for it.
void BulkHost::Serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, stop, [this] { return expects_; });
    }
    if (stop.stop_requested()) return;
    try {
      end_->Serve(kServe_s);
    } catch (const Error&) {
      Expect(false);
    }
  }
}

void BulkHost::Expect(bool transfers) {
  {
    std::lock_guard lock(mutex_);
    expects_ = transfers;
  }
  changed_.notify_one();
}

BulkHost::Answer BulkHost::Greet() {
  Answer answer{.rest = BytesOf(greeting_->place()) + end_->address()};
  answer.reply.length = answer.rest.size();
  return answer;
}

BulkHost::Answer BulkHost::GiveSlot(const Word& word) {
  const RegionRecord& region = store_.Known(word.region);
  CheckPlace(NameOf(region), region.type, region.length, word.type, word.offset, word.length);
  const auto slot = store_.SlotFor(session_, word, word.length * ValueBytes(region.type));
  if (!slot_ || slot_place_.data() != slot.data() || slot_place_.size() < slot.size()) {
    slot_.reset();
    slot_ = end_->Share(slot, true);
    slot_place_ = slot;
  }
  Expect(true);
  return {{.length = sizeof(BulkPlace)}, BytesOf(slot_->place())};
}

Reply BulkHost::Change(const Word& word) {
  Expect(false);
  const Reply answer = store_.Do(session_, word);
  if (word.kind == WordKind::kPut) ForgetSlot();
  return answer;
}

BulkPlace BulkHost::ShareRegion(const RegionRecord& region) {
  const std::pair key{region.data, region.capacity};
  auto found = regions_.find(key);
  if (found == regions_.end()) {
    if (regions_.size() >= kMostShared) regions_.clear();
    const std::span<std::byte> place(store_.image().at(region.data), region.capacity);
    found = regions_.emplace(key, end_->Share(place, false)).first;
  }
  return found->second->place();
}

BulkHost::Answer BulkHost::Hold(const Word& word) {
  const RegionRecord& region = store_.Known(word.region);
  CheckPlace(NameOf(region), region.type, region.length, word.type, word.offset, word.length);
  held_.emplace(store_.image(), session_, client_, word.region, After(timeout_s_));
  held_until_ = After(std::min(timeout_s_, ReaderPatience(region.capacity)));
  try {
    BulkPlace place = ShareRegion(region);
    place.at += word.offset * ValueBytes(region.type);
    Expect(true);
    Reply reply{.length = sizeof(BulkPlace),
                .version = region.version.load(std::memory_order_acquire)};
    return {reply, BytesOf(place)};
  } catch (...) {
    held_.reset();
    throw;
  }
}

Reply BulkHost::Release() {
  Expect(false);
  const bool held = held_ && held_->Release();
  held_.reset();
  return {.value = held};
}

void BulkHost::GiveWay() {
  if (held_ && held_->Wanted() && After(0) >= held_until_) held_.reset();
}

}  // namespace trireme
