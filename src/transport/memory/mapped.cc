#include "transport/memory/mapped.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "transport/memory/extents.h"
#include "transport/memory/store.h"
#include "transport/memory/word_memory.h"

namespace trireme {
namespace {

constexpr double kBoxLook_s = 0.1;  // between looks at whether the box is still there

class MappedMemory final : public WordMemory {
 public:
  MappedMemory(std::shared_ptr<MemoryImage> image, double timeout_s)
      : image_(std::move(image)), timeout_s_(timeout_s), spins_(SpinsFor(2)) {
    const ProcessId own = OwnProcess();
    number_ = ClaimSession(image_->header(), client_);
    if (number_ == kMostSessions) {
      throw Error("the memory box has {} clients already", kMostSessions);
    }
    session().born.store(own.born);
    session().pid.store(own.pid);
  }

  ~MappedMemory() override {
    std::lock_guard lock(mutex_);
    Settle();
    try {
      Post({.kind = WordKind::kLeave});  // nobody waits for the answer
    } catch (const std::exception&) {    // the box has ended it, or still has the last word
    }
  }

  uint64_t Wait(const Region& region, uint64_t version, Deadline deadline) override {
    RegionRecord& record = Record(region);
    {
      std::lock_guard lock(mutex_);
      Settle();  // a change of this client may be what is waited for
    }
    for (;;) {
      const uint32_t count = record.changed.Count();
      const uint64_t reached = record.version.load(std::memory_order_acquire);
      const Deadline now = After(0);
      if (reached >= version || now >= deadline) return reached;
      CheckBox();
      record.changed.Wait(count, std::min(deadline, After(kBoxLook_s)), spins_);
    }
  }

  std::vector<RegionNote> Notes(const Region& region, uint64_t version, size_t most) override {
    const RegionRecord& record = Record(region);
    std::lock_guard lock(mutex_);
    Settle();
    std::vector<RegionNote> notes;
    Read(region, [&] {
      notes.clear();
      const uint64_t newest = record.version.load(std::memory_order_acquire);
      CheckKept(NameOf(record), version, newest);
      for (uint64_t v = version + 1; v <= newest && notes.size() < most; ++v) {
        notes.push_back(NoteOf(image_->ring(record, v)));
      }
    });
    return notes;
  }

  bool Lock(const Region& region, Deadline deadline) override {
    RegionRecord& record = Record(region);
    const Word word{.kind = WordKind::kLock, .region = uint32_t(region.number)};
    for (;;) {
      const uint32_t count = record.changed.Count();
      {
        std::lock_guard lock(mutex_);
        if (Ask(word).value != 0) return true;
      }
      if (After(0) >= deadline) return false;
      record.changed.Wait(count, std::min(deadline, After(kBoxLook_s)), 0);
    }
  }
  void Unlock(const Region& region) override {
    Record(region);
    std::lock_guard lock(mutex_);
    Ask({.kind = WordKind::kUnlock, .region = uint32_t(region.number)});
  }

  uint64_t incarnation() const override { return image_->header().incarnation; }
  std::string way() const override {
    return image_->path().empty() ? "mapped" : "mapped " + image_->path();
  }

 protected:
  Region Reach(std::string_view, const Word& word) override {
    std::lock_guard lock(mutex_);
    const Reply answer = Ask(word);
    return {int(answer.region), answer.type, answer.length, incarnation()};
  }

  Ticket GetBytes(const Region& region, RegionType type, uint64_t offset,
                  std::span<std::byte> values, uint64_t* version) override {
    const RegionRecord& record = Record(region);
    CheckIn(region, type, offset, values.size() / ValueBytes(type));
    std::lock_guard lock(mutex_);
    Settle();
    Read(region, [&] {
      std::copy_n(image_->at(record.data) + offset * ValueBytes(type), values.size(),
                  values.data());
      if (version) *version = record.version.load(std::memory_order_acquire);
    });
    received_ += values.size();
    return {};
  }

  Ticket Change(const Region& region, const Word& word, std::span<const std::byte> values,
                uint64_t* version, const MemoryGuard* guard) override {
    CheckIn(region, word.type, word.offset, word.length);
    if (guard) Record(guard->region);
    std::lock_guard lock(mutex_);
    Settle();
    CheckSession();
    const uint64_t capacity = RoundUpToPage(region.length * ValueBytes(region.type));
    if (slot_bytes_ < capacity) {
      slot_bytes_ = 0;  // the old one makes room, even where there is none for the new one
      Ask({.kind = WordKind::kSlot, .length = capacity});
      slot_bytes_ = capacity;
    }
    std::copy_n(values.data(), values.size(), image_->at(session().slot));
    sent_ += values.size();
    auto pending = std::make_unique<Pending>(*this, version);
    PostChange(word);
    pending_ = pending.release();
    return Ticket(pending_);
  }

  int64_t Count(const Region& region, const Word& word) override {
    CheckIn(region, RegionType::kI64, word.offset, 1);
    std::lock_guard lock(mutex_);
    Settle();
    PostChange(word);
    return Answer().value;
  }

 private:
  // The one change whose word is with the box.
  class Pending final : public Transfer {
   public:
    Pending(MappedMemory& memory, uint64_t* version) : memory_(memory), version_(version) {}
    void Wait() override {
      std::lock_guard lock(memory_.mutex_);
      if (memory_.pending_ == this) memory_.Settle();
      waited_ = true;
      if (error_) std::rethrow_exception(error_);
    }
    void Finish() noexcept override {
      if (!waited_) {
        std::lock_guard lock(memory_.mutex_);
        if (memory_.pending_ == this) memory_.Settle();
      }
      delete this;
    }

   private:
    friend class MappedMemory;
    MappedMemory& memory_;
    uint64_t* const version_;
    std::exception_ptr error_;
    bool waited_ = false;  // by whoever has the ticket
  };

  SessionRecord& session() const { return image_->session(number_); }

  RegionRecord& Record(const Region& region) const {
    if (region.number < 0 || region.number >= int(kMostRegions) ||
        region.incarnation != incarnation()) {
      throw Error("region {} was not opened in this memory", region.number);
    }
    return image_->region(uint32_t(region.number));
  }
  // By what is known of it: the box writes beside what is in the record.
  void CheckIn(const Region& region, RegionType type, uint64_t offset, uint64_t length) const {
    const RegionRecord& record = Record(region);
    if (type == region.type && offset <= region.length && length <= region.length - offset) return;
    CheckPlace(NameOf(record), region.type, region.length, type, offset, length);
  }
  // Before anything is written that the box reads: it may still hear the last word, and a session
  // that it has ended may be another client's by now.
  void CheckSession() const {
    if (lost_) std::rethrow_exception(lost_);
    if (session().client.load() == client_) return;
    throw PeerLost("the memory box has ended this client's session");
  }
  void CheckBox() const {
    if (image_->header().closed.load()) throw PeerLost("the memory box has ended");
  }
  // What the box has changed meanwhile, because this process stood still, is read again.
  void Read(const Region& region, FunctionRef<void()> look) const {
    for (const Deadline deadline = After(timeout_s_);;) {
      ReadLock read(*image_, number_, client_, uint32_t(region.number), deadline);
      look();
      if (read.Release()) return;
      if (After(0) >= deadline) throw PeerLost("region {} changes too often", region.number);
    }
  }

  Reply Ask(const Word& word) {
    Settle();
    Post(word);
    return Answer();
  }
  Reply Answer() {
    const Reply answer = Await();
    CheckReply(answer);
    return answer;
  }
  void PostChange(const Word& word) { Post(word, ++changes_); }

  void Post(const Word& word, uint64_t number = 0) {
    CheckSession();
    SessionRecord& own = session();
    CopyWord(word, own.word);
    own.word.number = number;
    own.posted.store(1, std::memory_order_release);
    image_->header().posted.Notify();
  }

  // A short answer is there before anybody looks at a clock.
  Reply Await() {
    SessionRecord& own = session();
    Reply answer;
    try {
      for (std::optional<Deadline> deadline;;) {
        const uint32_t count = own.answered.Count();
        CheckSession();
        if (own.posted.load() == 0) {
          CopyReply(own.answer, answer);
          return answer;
        }
        if (!deadline) {
          if (own.answered.Spin(count, spins_)) continue;
          deadline = After(timeout_s_);
        }
        CheckBox();
        if (After(0) >= *deadline) {
          throw PeerLost("the memory box has not answered for {:g} s (transport.timeout_s)",
                         timeout_s_);
        }
        own.answered.Wait(count, std::min(*deadline, After(kBoxLook_s)), 0);
      }
    } catch (...) {  // the word may still be heard: no other one may follow it
      lost_ = std::current_exception();
      throw;
    }
  }

  // Awaits the change that is under way, if there is one; its ticket throws what went wrong.
  void Settle() noexcept {
    Pending* const pending = std::exchange(pending_, nullptr);
    if (!pending) return;
    try {
      const Reply answer = Answer();
      if (pending->version_) *pending->version_ = answer.version;
    } catch (...) {
      pending->error_ = std::current_exception();
    }
  }

  const std::shared_ptr<MemoryImage> image_;
  const double timeout_s_;
  const int spins_;
  uint32_t number_ = 0;  // of the session
  std::mutex mutex_;     // guards all below, and the session
  uint64_t changes_ = 0;
  uint64_t slot_bytes_ = 0;  // what its slot has room for
  Pending* pending_ = nullptr;
  std::exception_ptr lost_;  // why nothing more can be said
};

}  // namespace

std::unique_ptr<Memory> ConnectMapped(std::shared_ptr<MemoryImage> image, double timeout_s) {
  return std::make_unique<MappedMemory>(std::move(image), timeout_s);
}

std::unique_ptr<Memory> ConnectMappedFile(const std::string& path, double timeout_s) {
  return ConnectMapped(MemoryImage::OpenFile(path), timeout_s);
}

}  // namespace trireme
