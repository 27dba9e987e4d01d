#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/state_io.h"
#include "strategy/step/replica.h"

namespace trireme {

class Server;

// Who keeps the run that a server leads. Called on the server's thread, which serves nobody
// meanwhile: what takes long happens elsewhere, with a copy.
class ServerKeeper {
 public:
  virtual ~ServerKeeper() = default;
  // As many positions count as it and those before have; see EpochBorder.
  virtual void EpochEnded(const Server& server) = 0;
  virtual bool Busy() { return false; }  // EpochEnded would wait for what it was given before
  virtual void Look(const Server& server) = 0;  // now and then: a snapshot may be due
  virtual bool Stop() = 0;                      // the run shall end early
  virtual int signal() const { return 0; }      // the wish of this rank's user for that; 0: none
  virtual void Signalled(int /*signal*/) {}     // the wish of another server's
};

// A server rank of a free pace: no steps, no replica. One thread.
class Server {
 public:
  virtual ~Server() = default;
  virtual void Load(const StateReader& reader) = 0;
  virtual void Run(ServerKeeper* keeper) = 0;  // until the run is over; the keeper may be null

  // Where others hold parts of the centre: brings together what it is at this moment. Before
  // centre() and Save, which tell of the last such moment.
  virtual void Gather() const {}
  virtual std::span<const float> centre() const = 0;  // weights and statistics
  virtual void Save(
      StateWriter& writer) const = 0;  // what belongs to it: leases, optimizer, counts
  // Since the run began.
  struct Progress {
    int64_t epochs = 0;     // that have ended
    int64_t positions = 0;  // that count
    int64_t updates = 0;
    double loss_sum = 0, correct = 0;  // of the present epoch, over `samples`
    int64_t samples = 0;
    uint64_t bytes_sent = 0, bytes_received = 0;
  };
  virtual Progress progress() const = 0;
  virtual std::vector<ClientStats> clients() const = 0;
};

}  // namespace trireme
