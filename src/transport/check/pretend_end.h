#pragma once
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "transport/memory/bulk.h"

namespace trireme {

// An end for long values that moves them within this process, so that a box and its clients can be
// tested where there is no libfabric, and under sanitizers.
class PretendEnd final : public BulkEnd {
 public:
  static constexpr const char* kAddress = "here";

  std::string address() override { return kAddress; }
  void Reach(const std::string& address) override {
    if (address != kAddress) throw Error("'{}' is no address of a pretended end", address);
  }

  void Write(std::span<const std::byte> from, BulkPlace to, const BulkWatch&) override {
    std::lock_guard lock(table().mutex);
    const std::span<std::byte> place = Find(to, from.size(), true);
    std::memcpy(place.data(), from.data(), from.size());
  }
  void Read(std::span<std::byte> into, BulkPlace from, const BulkWatch&) override {
    std::lock_guard lock(table().mutex);
    const std::span<std::byte> place = Find(from, into.size(), false);
    std::memcpy(into.data(), place.data(), into.size());
  }

  std::unique_ptr<Shared> Share(std::span<std::byte> memory, bool writable) override {
    return std::make_unique<Part>(memory, writable);
  }

  void Serve(double seconds) override {
    std::unique_lock lock(mutex_);
    woken_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return wakes_; });
    wakes_ = false;
  }
  void Wake() override {
    {
      std::lock_guard lock(mutex_);
      wakes_ = true;
    }
    woken_.notify_one();
  }

 private:
  struct Place {
    std::span<std::byte> memory;
    bool writable = false;
  };
  struct Table {
    std::mutex mutex;
    std::map<uint64_t, Place> places;  // by key; guarded by mutex
    uint64_t last = 0;                 // likewise
  };
  static Table& table() {
    static Table table;
    return table;
  }

  class Part final : public Shared {
   public:
    Part(std::span<std::byte> memory, bool writable) {
      std::lock_guard lock(table().mutex);
      key_ = ++table().last;
      table().places[key_] = {memory, writable};
    }
    ~Part() override {
      std::lock_guard lock(table().mutex);
      table().places.erase(key_);
    }
    BulkPlace place() const override { return {0, key_}; }

   private:
    uint64_t key_ = 0;
  };

  // With the table locked.
  static std::span<std::byte> Find(const BulkPlace& place, size_t bytes, bool writes) {
    const auto found = table().places.find(place.key);
    if (found == table().places.end() || (writes && !found->second.writable)) {
      throw BulkBroken("nothing is shared there");
    }
    const std::span<std::byte> memory = found->second.memory;
    if (place.at > memory.size() || bytes > memory.size() - place.at) {
      throw BulkBroken("beyond what is shared");
    }
    return memory.subspan(place.at, bytes);
  }

  std::mutex mutex_;
  std::condition_variable woken_;
  bool wakes_ = false;  // guarded by mutex_
};

// As OpenBulk.
inline std::unique_ptr<BulkEnd> OpenPretendEnd(const std::string&, const std::string&) {
  return std::make_unique<PretendEnd>();
}

}  // namespace trireme
