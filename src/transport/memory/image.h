#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "transport/futex_event.h"
#include "transport/memory/word.h"

namespace trireme {

// The contents of a box, as they lie in memory that it shares with its clients, or in a file. What
// a killed process had written is there; places are offsets. Zeroed memory is an empty record.

constexpr uint32_t kMostRegions = 512;
constexpr uint32_t kMostSessions = 256;
constexpr uint32_t kMostThreads = 16;  // that add
constexpr uint64_t kPiece = 64 << 10;  // bytes that a thread adds at a time
constexpr uint64_t kBoxPage = 4096;    // what allocations are rounded up to
constexpr uint64_t kKeptResults = 16;  // of a session: more changes must not be on their way

struct RingEntry {
  uint64_t version, client, number;
  uint32_t note_bytes, zero;
  std::byte note[kMostNote];
};

struct RegionRecord {
  std::atomic<uint32_t> used;  // written last
  RegionType type;
  char name[kMostRegionName + 1];
  uint64_t length;    // values
  uint64_t capacity;  // bytes of its place
  uint64_t data;      // where it is
  uint64_t ring;      // RingEntry[kKeptNotes]
  std::atomic<uint64_t> version;
  std::atomic<uint64_t> lock_owner;  // a client, or 0
  // The box sets `writing` and waits until no session is `reading` it; a reader that finds it set
  // steps back.
  std::atomic<uint32_t> writing;
  FutexEvent changed;  // version, lock_owner or writing
};

struct ChangeResult {
  uint64_t number, version;
  int64_t value;
  Verdict verdict;
  uint32_t zero;
};

// What is written at each word lies in lines of its own: by the box alone, by the client (and it
// is read by the box), by both.
struct SessionRecord {
  alignas(64) std::atomic<uint64_t> client;  // 0: free; written last
  // Of a mapped client: its process, by which the box sees that it has died.
  std::atomic<uint32_t> pid;  // 0: comes by a wire
  std::atomic<uint64_t> born;
  std::atomic<uint64_t> reading;  // ReadingMark of a region, or 0
  uint64_t slot_bytes;

  alignas(64) uint64_t last;  // number of the newest change
  ChangeResult results[kKeptResults];

  alignas(64) std::atomic<uint32_t> posted;  // 1: `word` waits for the box; 0: `answer` is there
  FutexEvent answered;
  uint64_t slot;  // where values wait to be put or added: slot_bytes
  Reply answer;

  alignas(64) Word word;
};

// The one change that is being made, so that the next box finishes what a killed one began.
struct Journal {
  std::atomic<uint32_t> running;  // written last, cleared last
  uint32_t session;
  uint32_t swaps, zero;  // a put that hands its slot over
  uint64_t client, version;
  uint64_t new_data, new_slot;  // where region and slot are afterwards
  int64_t before, after;        // of a word that is added to or swapped
  Word word;
};

// The values of a piece before it is added.
struct Aside {
  std::atomic<uint64_t> piece;  // number + 1; 0: none
  alignas(64) std::byte values[kPiece];
};

struct BoxHeader {
  char magic[8];
  uint32_t format, zero;
  uint64_t bytes;                // of all
  uint64_t arena;                // where places begin
  uint64_t incarnation;          // of the contents
  char boot[64];                 // of the machine when it was opened last
  std::atomic<uint32_t> clean;   // closed, and on the disk
  std::atomic<uint32_t> closed;  // a box served it and has ended by itself
  std::atomic<uint32_t> box;     // the process that serves it; 0: none does
  std::atomic<uint64_t> box_born;
  uint64_t touched;  // end of what was ever given out: beyond, all is zero
  // As in a session, in lines of their own: what clients write at each word, what the box writes.
  alignas(64) FutexEvent posted;                  // a word, by some session
  FutexEvent readers;                             // one is done
  alignas(64) std::atomic<uint32_t> session_top;  // sessions from here on were never used
  std::atomic<uint64_t> changes, refused;
  Journal journal;
  RegionRecord regions[kMostRegions];
  SessionRecord sessions[kMostSessions];
  Aside aside[kMostThreads];
  // Then a byte for each piece that is added, and the arena.
};

// A mapping of such memory.
class MemoryImage {
 public:
  // Shared with the processes that are forked afterwards; gone with the last of them.
  static std::shared_ptr<MemoryImage> Anonymous(size_t bytes);
  // The file is made where there is none, and made anew where the machine has been restarted since
  // without the box having closed it: its pages may be of different moments then. An Error where it
  // is not one of these, or was changed.
  static std::shared_ptr<MemoryImage> File(const std::string& path, size_t bytes);
  static std::shared_ptr<MemoryImage> OpenFile(const std::string& path);  // of a box that serves it
  ~MemoryImage();
  MemoryImage(const MemoryImage&) = delete;
  MemoryImage& operator=(const MemoryImage&) = delete;

  BoxHeader& header() const { return *reinterpret_cast<BoxHeader*>(base_); }
  std::byte* at(uint64_t place) const { return base_ + place; }
  std::atomic<uint8_t>* added() const;               // by piece
  const std::string& path() const { return path_; }  // empty: no file
  bool fresh() const { return fresh_; }              // it was empty
  void Close();  // what is in it is on the disk, and another machine's life may go on with it
  int fd() const { return fd_; }
  uint64_t bytes() const { return bytes_; }

  RegionRecord& region(uint32_t number) const { return header().regions[number]; }
  SessionRecord& session(uint32_t number) const { return header().sessions[number]; }
  RingEntry& ring(const RegionRecord& region, uint64_t version) const;  // that made it

  // An Error that says what cannot be: of a file that was cut or changed.
  void Validate() const;

 private:
  MemoryImage(std::string path, int fd, size_t bytes);
  void Begin();  // writes the header of an empty one

  const std::string path_;
  const int fd_;
  const size_t bytes_;
  std::byte* base_ = nullptr;
  bool fresh_ = false;
};

// A free session is this client's; kMostSessions: there is none.
uint32_t ClaimSession(BoxHeader& header, uint64_t client);

// What a client that reads a region writes into its session: of no other client.
constexpr uint64_t ReadingMark(uint64_t client, uint32_t region) {
  return client << 16 | (region + 1);
}

uint64_t ImageBytes(uint64_t arena);  // of an image with so much room
std::string_view NameOf(const RegionRecord& region);

// This process, and whether another one still runs.
struct ProcessId {
  uint32_t pid = 0;
  uint64_t born = 0;  // in the kernel's clock: numbers of processes come again
};
ProcessId OwnProcess();
bool IsAlive(const ProcessId& process);

uint64_t NewNumber();  // random, never 0

}  // namespace trireme
