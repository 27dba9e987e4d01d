#pragma once
#include <cstdint>
#include <vector>

namespace trireme {

// What a client and a server with a centre say to each other: kinds of Message.
enum Word : int {
  // From a client.
  kAsk,    // leases, please. holds (0, 1): I have work that you do not have yet; how many at most
  kFetch,  // the centre, please
  kPush,   // version of the centre it was made from, then leases; body: what to merge
  kSnapshot,  // centre, leases and version of one moment, please
  kStop,      // the run shall end early
  kLeave,     // I shall work no more; what I hold is free. Answered by kEnd when all is drained
  kBye,       // I shall ask no more

  // From the server.
  kGrant,     // epoch, then id, begin, end of each lease
  kDrain,     // nothing left to lease in this epoch: push what you hold, then ask again
  kEpochEnd,  // epoch: every position of it counts. Once for each client
  kEnd,       // the run is over and drained
  kCentre,    // version; body: the centre
  kImage,     // version, number of lease numbers, these, then the staleness histogram; body: centre
  kRefused,   // your push did not count and your leases are void: begin anew from the centre
  kWait,      // (offered) your ask stands, others still work
};

}  // namespace trireme
