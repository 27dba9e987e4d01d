#pragma once
#include <memory>

#include "strategy/exchange/centre.h"
#include "strategy/exchange/handout.h"
#include "strategy/exchange/lease_client.h"
#include "strategy/exchange/memory_centre.h"
#include "strategy/exchange/server_centre.h"
#include "strategy/exchange/server_line.h"

namespace trireme {

// A worker's side of a run that servers lead: who hands out its work, and who keeps the common
// weights.
class Client {
 public:
  explicit Client(std::vector<ServerLine::Holder> servers, LeaseSource::Ahead ahead = {})
      : line_(std::move(servers)) {
    auto leases = std::make_unique<LeaseClient>(line_, ahead);
    auto centre = std::make_unique<ServerCentre>(line_, *leases);
    line_.Listen({leases.get(), centre.get()});
    leases_ = std::move(leases);
    centre_ = std::move(centre);
  }
  // The centre is not the server's: it lies in remote memory.
  Client(Link& server, LeaseSource::Ahead ahead, const MemoryCentre::Place& place)
      : line_(std::vector<ServerLine::Holder>{{&server, {}}}), in_memory_(true) {
    auto leases = std::make_unique<LeaseClient>(line_, ahead);
    line_.Listen({leases.get()});
    leases_ = std::move(leases);
    centre_ = std::make_unique<MemoryCentre>(place, *leases_);
  }
  // ... and so do the leases.
  Client(Link& server, LeaseSource::Ahead ahead, const MemoryCentre::Place& place,
         const Handout::Place& handout)
      : line_(std::vector<ServerLine::Holder>{{&server, {}}}),
        leases_(std::make_unique<Handout>(handout, ahead, line_)),
        centre_(std::make_unique<MemoryCentre>(place, *leases_)),
        in_memory_(true),
        draws_(true) {
    line_.Listen({});
  }
  explicit Client(Link& link) : Client(std::vector<ServerLine::Holder>{{&link, {}}}) {}
  ~Client() {
    // Whoever keeps the memory may end after the goodbye.
    if (in_memory_) centre_.reset();
    if (draws_) leases_.reset();
    line_.Close();  // before those who listen go
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  LeaseSource& leases() { return *leases_; }
  Centre& centre() { return *centre_; }

  double waited_s() const { return line_.waited_s() + leases_->waited_s() + centre_->waited_s(); }
  Volume volume() const {
    const Volume line = line_.volume(), centre = centre_->volume();
    return {line.sent + centre.sent, line.received + centre.received};
  }

 private:
  ServerLine line_;
  std::unique_ptr<LeaseSource> leases_;
  std::unique_ptr<Centre> centre_;
  const bool in_memory_ = false;  // the centre
  const bool draws_ = false;      // leases, from memory: nobody listens
};

}  // namespace trireme
