#pragma once
#include "transport/memory/image.h"

namespace trireme {

// What the ways to a box have in common: a call is a word, and its answer.
class WordMemory : public Memory {
 public:
  Region Create(std::string_view name, RegionType type, uint64_t length) final;
  Region Open(std::string_view name, Deadline deadline) final;
  Ticket Accumulate(const Region& region, uint64_t offset, std::span<const float> values,
                    std::span<const std::byte> note, uint64_t* version,
                    const MemoryGuard* guard) final;
  int64_t FetchAdd(const Region& region, uint64_t index, int64_t amount) final;
  int64_t CompareSwap(const Region& region, uint64_t index, int64_t expected, int64_t wanted) final;
  uint64_t client() const final { return client_; }
  Volume volume() const final { return {sent_.load(), received_.load()}; }

 protected:
  Ticket PutBytes(const Region& region, RegionType type, uint64_t offset,
                  std::span<const std::byte> values, std::span<const std::byte> note,
                  uint64_t* version) final;

  // Makes or opens a region; its number is -1 where there is none of this name.
  virtual Region Reach(std::string_view name, const Word& word) = 0;
  // Changes: the way checks the region and the place, and gives the word its number.
  virtual Ticket Change(const Region& region, const Word& word, std::span<const std::byte> values,
                        uint64_t* version, const MemoryGuard* guard) = 0;
  virtual int64_t Count(const Region& region, const Word& word) = 0;

  const uint64_t client_ = NewNumber();
  std::atomic<uint64_t> sent_ = 0, received_ = 0;

 private:
  Ticket ChangeValues(WordKind kind, const Region& region, RegionType type, uint64_t offset,
                      std::span<const std::byte> values, std::span<const std::byte> note,
                      uint64_t* version, const MemoryGuard* guard);
};

RegionNote NoteOf(const RingEntry& entry);

}  // namespace trireme
