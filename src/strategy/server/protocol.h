#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <span>

namespace trireme {

// What a client and a server with a centre say to each other: kinds of Message.
enum ServerWord : int {
  // From a client.
  kAsk,    // leases, please. holds (0, 1): I have work that you do not have yet; how many at most;
           // how many at least: fewer are used up before your next answer
  kFetch,  // the centre, please. A number that the answer repeats; computes (0, 1): from it, until
           // I
           // push (staleness that waits)
  kPush,   // PushHead, then leases; body: what to merge
  kLeave,  // I shall work no more; what I hold is free
  kBye,    // I shall say no more

  // From the server.
  kGrant,      // epoch, then id, begin, end of each lease; where the centre lies in remote memory,
               // then the client's number and its fence (see MemoryLedger)
  kDrain,      // nothing left to lease in this epoch: push what you hold, then ask again
  kEnd,        // the run is over and drained
  kCentre,     // version, clients that are here, the fetch's number; body: the centre. Answers
               // kFetch, and in rounds kPush
  kNews,       // (offered) the same, unasked: the newest centre, or a server's partition of it
  kRefused,    // your push did not count and your leases are void: begin anew from the centre
  kDismissed,  // too many of your pushes were not finite: do not come back
  kWait,       // (offered) your ask stands, others still work

  // Where the centre lies on several servers (see partition.h). A push is known by its first lease.
  kPartition,  // client to a server but the first: lease; body: that server's partition of the push
  kAnew,       // client to the first: another server is a new one, or the centre in memory took no
               // add; what I hold and have sent is void
  kFetched,    // a server but the first to a client: the fetch's number; body: its partition
  kHas,        // to the first: lease, client, good (0, 1): a partition of a push has come
  kLoad,       // from the first: its life, then the partition to begin with (PackPartition)
  kApply,   // from the first: lease, client, step, bits of the share, samples: the push counts now
  kForget,  // from the first: lease, client: the push does not count
  kSave,    // from the first: what is your partition now?
  kSaved,   // to the first: this (PackPartition)
  kOver,    // from the first: the run is over
  kStop,    // to the first: I got a signal, of this number: the run shall end early
};

inline int64_t BitsOf(double value) { return std::bit_cast<int64_t>(value); }
inline double RealOf(int64_t bits) { return std::bit_cast<double>(bits); }

// No two lives of the run's server give out the same ids of leases: each counts from a number of
// its own, which no clock has a say in. Two that never heard of each other differ by chance (1 :
// 2^31).
constexpr int kLivesFrom = 32;  // bit of an id
constexpr int64_t kLives = int64_t(1) << 31;
inline int64_t LifeOf(int64_t lease) { return lease >> kLivesFrom; }

// The first numbers of a push.
struct PushHead {
  int64_t version = 0;  // of the centre it was made from
  double loss_sum = 0;  // over the samples of its leases
  double correct = 0;
  double waited_s = 0;    // the client's worker, since its last push
  int64_t overflows = 0;  // steps of it since then that were taken again

  bool OverflowsCanBe() const { return overflows >= 0 && overflows <= int64_t{1} << 32; }
  static constexpr size_t kInts = 5;

  std::array<int64_t, kInts> ints() const {
    return {version, BitsOf(loss_sum), BitsOf(correct), BitsOf(waited_s), overflows};
  }
  static PushHead Of(std::span<const int64_t> ints) {
    return {ints[0], RealOf(ints[1]), RealOf(ints[2]), RealOf(ints[3]), ints[4]};
  }
};

}  // namespace trireme
