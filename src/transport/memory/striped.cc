#include "transport/memory/striped.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "base/function_ref.h"
#include "flat/cpu/loops.h"
#include "transport/memory/word.h"

namespace trireme {
namespace {

constexpr size_t kWorthThreads = 64 << 10;  // bytes: less goes to the boxes one after another
constexpr double kFindPause_s = 0.01;       // between looks for a region that nobody has made yet

// Calls fn(k) for stripes 1 ... count - 1, at the same time where that is worth it.
void ForOthers(size_t count, size_t bytes, FunctionRef<void(size_t stripe)> fn) {
  if (count <= 2 || bytes < kWorthThreads) {
    for (size_t k = 1; k < count; ++k) fn(k);
    return;
  }
  std::vector<std::exception_ptr> errors(count);
  {
    std::vector<std::jthread> threads;
    for (size_t k = 1; k < count; ++k) {
      threads.emplace_back([&, k] {
        try {
          fn(k);
        } catch (const std::exception&) {
          errors[k] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

class StripedMemory final : public Memory {
 public:
  StripedMemory(std::vector<std::unique_ptr<Memory>> boxes, std::string way)
      : boxes_(std::move(boxes)), way_(std::move(way)) {}

  Region Create(std::string_view name, RegionType type, uint64_t length) override {
    CheckName(name);
    if (const auto found = Find(name)) {
      if (found->type == type && found->length == length) return *found;
      throw Error("region '{}' has {} {} values, not {} {}", name, found->length,
                  NameOf(found->type), length, NameOf(type));
    }
    Parts parts{.name = std::string(name)};
    const size_t count = type == RegionType::kF32 && length >= boxes_.size() ? boxes_.size() : 1;
    parts.regions.resize(count);
    for (size_t k = count; k-- > 0;) {  // the first is the last: whoever finds it finds all
      parts.regions[k] = boxes_[k]->Create(StripeName(name, k, count), type,
                                           Begin(length, k + 1, count) - Begin(length, k, count));
    }
    return Keep(std::move(parts));
  }

  Region Open(std::string_view name, Deadline deadline) override {
    CheckName(name);
    for (;;) {
      if (const auto found = Find(name)) return *found;
      if (After(0) >= deadline) {
        throw Error(
            "the memory boxes have no region '{}', or other clients name them in another "
            "order (transport.memory)",
            name);
      }
      std::this_thread::sleep_until(std::min(deadline, After(kFindPause_s)));
    }
  }

  Ticket Accumulate(const Region& region, uint64_t offset, std::span<const float> values,
                    std::span<const std::byte> note, uint64_t* version,
                    const MemoryGuard* guard) override {
    const Parts parts = PartsOf(region);
    CheckPlace(parts.name, region.type, region.length, RegionType::kF32, offset, values.size());
    CheckNote(note.size());
    if (!values.empty() && !std::isfinite(loops::Largest(values.data(), values.size()))) {
      throw Error("an add to region '{}' has values that are not finite", parts.name);
    }
    MemoryGuard first_guard;
    if (guard) {
      const Parts numbers = PartsOf(guard->region);
      CheckPlace(numbers.name, guard->region.type, guard->region.length, RegionType::kI64,
                 guard->index, 1);
      first_guard = {numbers.regions[0], guard->index, guard->expected};
    }
    const auto add = [&](size_t k) {
      const Span at = SpanOf(parts, region, k, offset, values.size());
      const std::span<const float> own = values.subspan(at.from, at.count);
      if (k == 0) {
        boxes_[0]
            ->Accumulate(parts.regions[0], at.offset, own, note, version,
                         guard ? &first_guard : nullptr)
            .Wait();
      } else if (at.count > 0) {
        boxes_[k]->Accumulate(parts.regions[k], at.offset, own).Wait();
      }
    };
    ForOthers(parts.regions.size(), values.size_bytes(), add);
    try {
      add(0);
    } catch (const PeerLost&) {  // nobody knows whether it is there
      throw;
    } catch (const Error&) {
      TakeBack(parts, region, offset, values);
      throw;
    }
    return {};
  }

  int64_t FetchAdd(const Region& region, uint64_t index, int64_t amount) override {
    const Parts parts = NumbersOf(region, index);
    return boxes_[0]->FetchAdd(parts.regions[0], index, amount);
  }
  int64_t CompareSwap(const Region& region, uint64_t index, int64_t expected,
                      int64_t wanted) override {
    const Parts parts = NumbersOf(region, index);
    return boxes_[0]->CompareSwap(parts.regions[0], index, expected, wanted);
  }

  // A box that came back empty has stripes that nobody has filled: they are waited for, too.
  uint64_t Wait(const Region& region, uint64_t version, Deadline deadline) override {
    const Parts parts = PartsOf(region);
    const uint64_t reached = boxes_[0]->Wait(parts.regions[0], version, deadline);
    if (version == 0 || reached < version) return reached;
    for (size_t k = 1; k < parts.regions.size(); ++k) {
      if (boxes_[k]->Wait(parts.regions[k], 1, deadline) < 1) return 0;
    }
    return reached;
  }

  std::vector<RegionNote> Notes(const Region& region, uint64_t version, size_t most) override {
    return boxes_[0]->Notes(PartsOf(region).regions[0], version, most);
  }
  bool Lock(const Region& region, Deadline deadline) override {
    return boxes_[0]->Lock(PartsOf(region).regions[0], deadline);
  }
  void Unlock(const Region& region) override { boxes_[0]->Unlock(PartsOf(region).regions[0]); }

  uint64_t client() const override { return boxes_[0]->client(); }
  uint64_t incarnation() const override {
    uint64_t all = 0;
    for (const auto& box : boxes_) all = all * 0x9e3779b97f4a7c15 + box->incarnation();
    return all;
  }
  std::string way() const override {
    std::string text = way_;
    if (!text.empty()) return text;
    for (const auto& box : boxes_) text += (text.empty() ? "" : ", ") + box->way();
    return text;
  }
  Volume volume() const override {
    Volume all;
    for (const auto& box : boxes_) {
      const Volume own = box->volume();
      all = {all.sent + own.sent, all.received + own.received};
    }
    return all;
  }
  bool one_fate() const override {
    return std::ranges::all_of(boxes_, [](const auto& box) { return box->one_fate(); });
  }

 protected:
  Ticket PutBytes(const Region& region, RegionType type, uint64_t offset,
                  std::span<const std::byte> values, std::span<const std::byte> note,
                  uint64_t* version) override {
    if (type == RegionType::kI64) {
      const Parts parts = PartsOf(region);
      CheckPlace(parts.name, region.type, region.length, type, offset,
                 values.size() / ValueBytes(type));
      boxes_[0]
          ->Put(parts.regions[0], offset, ValuesIn<const int64_t>(values), note, version)
          .Wait();
      return {};
    }
    const auto floats = ValuesIn<const float>(values);
    const Parts parts = PartsOf(region);
    CheckPlace(parts.name, region.type, region.length, type, offset, floats.size());
    CheckNote(note.size());
    const auto put = [&](size_t k) {
      const Span at = SpanOf(parts, region, k, offset, floats.size());
      const std::span<const float> own = floats.subspan(at.from, at.count);
      if (k == 0) {
        boxes_[0]->Put(parts.regions[0], at.offset, own, note, version).Wait();
      } else if (at.count > 0) {
        boxes_[k]->Put(parts.regions[k], at.offset, own).Wait();
      }
    };
    ForOthers(parts.regions.size(), values.size(), put);
    put(0);
    return {};
  }

  // The first stripe first: what its version says is then in the others, too.
  Ticket GetBytes(const Region& region, RegionType type, uint64_t offset,
                  std::span<std::byte> values, uint64_t* version) override {
    const Parts parts = PartsOf(region);
    CheckPlace(parts.name, region.type, region.length, type, offset,
               values.size() / ValueBytes(type));
    if (type == RegionType::kI64) {
      boxes_[0]->Get(parts.regions[0], offset, ValuesIn<int64_t>(values), version).Wait();
      return {};
    }
    const auto floats = ValuesIn<float>(values);
    const auto get = [&](size_t k) {
      const Span at = SpanOf(parts, region, k, offset, floats.size());
      if (k > 0 && at.count == 0) return;
      boxes_[k]
          ->Get(parts.regions[k], at.offset, floats.subspan(at.from, at.count),
                k == 0 ? version : nullptr)
          .Wait();
    };
    get(0);
    ForOthers(parts.regions.size(), values.size(), get);
    return {};
  }

 private:
  // A region, as it lies in the boxes.
  struct Parts {
    std::string name;
    std::vector<Region> regions;  // one in each of the first boxes
    uint64_t incarnation = 0;     // of all boxes when it was opened
  };
  // What of a call's values is of a stripe.
  struct Span {
    size_t from, count;
    uint64_t offset;  // in the stripe
  };

  template <class T, class Byte>
  static std::span<T> ValuesIn(std::span<Byte> bytes) {
    return {reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T)};
  }
  static uint64_t Begin(uint64_t length, size_t stripe, size_t count) {
    return length / count * stripe + length % count * stripe / count;
  }
  static std::string StripeName(std::string_view name, size_t stripe, size_t count) {
    return count == 1 ? std::string(name) : fmt::format("{}#{}/{}", name, stripe + 1, count);
  }
  static Span SpanOf(const Parts& parts, const Region& region, size_t k, uint64_t offset,
                     size_t length) {
    const uint64_t first = Begin(region.length, k, parts.regions.size());
    const uint64_t last = Begin(region.length, k + 1, parts.regions.size());
    const uint64_t from = std::clamp(first, offset, offset + length);
    const uint64_t to = std::clamp(last, offset, offset + length);
    return {size_t(from - offset), size_t(to - from), to > from ? from - first : 0};
  }

  // Nothing: it is not there yet.
  std::optional<Region> Find(std::string_view name) {
    for (const size_t count : {boxes_.size(), size_t{1}}) {
      Parts parts{.name = std::string(name)};
      try {
        for (size_t k = 0; k < count; ++k) {
          parts.regions.push_back(boxes_[k]->Open(StripeName(name, k, count), After(0)));
        }
        return Keep(std::move(parts));
      } catch (const PeerLost&) {
        throw;
      } catch (const Error&) {  // there is none
      }
    }
    return {};
  }

  Region Keep(Parts parts) {
    parts.incarnation = incarnation();
    Region whole{.type = parts.regions[0].type, .incarnation = parts.incarnation};
    for (const Region& region : parts.regions) whole.length += region.length;
    std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(opened_, parts.name, &Parts::name);
    whole.number = int(known - opened_.begin());
    if (known == opened_.end()) {
      opened_.push_back(std::move(parts));
    } else {
      *known = std::move(parts);
    }
    return whole;
  }

  Parts PartsOf(const Region& region) const {
    std::lock_guard lock(mutex_);
    if (region.number < 0 || size_t(region.number) >= opened_.size()) {
      throw Error("region {} was not opened in this memory", region.number);
    }
    const Parts& parts = opened_[size_t(region.number)];
    if (parts.incarnation != region.incarnation) {
      throw MemoryRenewed("a memory box came back without its contents ({})", way());
    }
    return parts;
  }
  Parts NumbersOf(const Region& region, uint64_t index) const {
    Parts parts = PartsOf(region);
    CheckPlace(parts.name, region.type, region.length, RegionType::kI64, index, 1);
    return parts;
  }

  void TakeBack(const Parts& parts, const Region& region, uint64_t offset,
                std::span<const float> values) {
    std::vector<float> back(values.size());
    std::ranges::transform(values, back.begin(), std::negate<>());
    ForOthers(parts.regions.size(), values.size_bytes(), [&](size_t k) {
      const Span at = SpanOf(parts, region, k, offset, values.size());
      if (at.count == 0) return;
      boxes_[k]
          ->Accumulate(parts.regions[k], at.offset,
                       std::span<const float>(back).subspan(at.from, at.count))
          .Wait();
    });
  }

  const std::vector<std::unique_ptr<Memory>> boxes_;
  const std::string way_;
  mutable std::mutex mutex_;
  std::vector<Parts> opened_;  // by number; guarded by mutex_
};

}  // namespace

std::unique_ptr<Memory> Stripe(std::vector<std::unique_ptr<Memory>> boxes, std::string way) {
  if (boxes.size() == 1) return std::move(boxes[0]);
  return std::make_unique<StripedMemory>(std::move(boxes), std::move(way));
}

}  // namespace trireme
