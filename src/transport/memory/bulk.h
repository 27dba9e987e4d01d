#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/function_ref.h"

namespace trireme {

// A byte of shared memory, as the other end names it.
struct BulkPlace {
  uint64_t at = 0, key = 0;
};

// The end or the other one is gone: another pair may do.
class BulkBroken : public Error {
 public:
  using Error::Error;
};

// How long a transfer may stand still: as long as `goes_on`, and `patience_s` at most.
struct BulkWatch {
  FunctionRef<bool()> goes_on;
  double patience_s = 60;
};

// One of two ends that move long values between a client and the memory of a box, beside the
// connection on which the words are said. The client writes and reads, the box shares and serves.
// Whoever knows a place may use it while it is shared; nobody guesses its key.
//
// Threads: one may call Serve while another one calls anything else.
// Failure: Write and Read throw BulkBroken; then the end is of no more use, and nobody touches the
//          bytes any more. The others throw Error.
class BulkEnd {
 public:
  virtual ~BulkEnd() = default;

  virtual std::string address() = 0;  // for the other end
  virtual void Reach(const std::string& address) = 0;

  virtual void Write(std::span<const std::byte> from, BulkPlace to, const BulkWatch& watch) = 0;
  virtual void Read(std::span<std::byte> into, BulkPlace from, const BulkWatch& watch) = 0;

  // Of memory that the other end may read or write while this lives. Ends before the BulkEnd.
  class Shared {
   public:
    virtual ~Shared() = default;
    virtual BulkPlace place() const = 0;
  };
  virtual std::unique_ptr<Shared> Share(std::span<std::byte> memory, bool writable) = 0;

  // What the other end wants happens in here: for so long, or until Wake.
  virtual void Serve(double seconds) = 0;
  virtual void Wake() = 0;
};

// Opens an end: of that provider, where the other one finds it at that address of this machine.
// Throws Error where the machine lacks what it needs.
using OpenBulk =
    std::function<std::unique_ptr<BulkEnd>(const std::string& provider, const std::string& host)>;

}  // namespace trireme
