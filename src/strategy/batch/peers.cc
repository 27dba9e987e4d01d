#include "strategy/batch/peers.h"

#include <utility>

#include "base/error.h"

namespace trireme {

Peers::Peers(World& world) : rank_(world.rank()), links_(size_t(world.size())) {
  for (int r = 0; r < world.size(); ++r) {
    if (r == rank_) continue;
    links_[size_t(r)] = &world.LinkTo(r);
    links_[size_t(r)]->SetWakeEvent(&wake_);
  }
}

Peers::~Peers() {
  for (Link* link : links_) {
    if (link) link->SetWakeEvent(nullptr);
  }
}

void Peers::Send(int rank, Message message) {
  sent_.fetch_add(BytesOf(message), std::memory_order_relaxed);
  links_[size_t(rank)]->Send(std::move(message));
}

bool Peers::Take(int rank, Message& message) {
  switch (links_[size_t(rank)]->Receive(message, ThisMoment())) {
    case Arrival::kMessage:
      received_ += BytesOf(message);
      return true;
    case Arrival::kNothing:
    case Arrival::kBack:
      return false;
    case Arrival::kGone:
    case Arrival::kRenewed:
      break;
  }
  throw PeerLost("{}", LostText(rank_, size(), rank, "its link is closed"));
}

void Peers::Wait() { wake_.Wait(After(1)); }

void Peers::Refuse(int rank, const Message& message) const {
  throw Error("rank {}: unexpected message kind {} with {} numbers and {} values from rank {}",
              rank_, message.kind, message.ints.size(), message.body.size(), rank);
}

}  // namespace trireme
