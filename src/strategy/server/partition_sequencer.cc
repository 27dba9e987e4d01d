#include "strategy/server/partition_sequencer.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "strategy/server/protocol.h"
#include "transport/forked.h"

namespace trireme {

PartitionSequencer::PartitionSequencer(const Layout& layout, std::vector<Link*> others) {
  const int servers = int(others.size()) + 1;
  for (int s = 0; s < servers; ++s) {
    const Range range = PartitionOf(layout.trained(), s, servers);
    partitions_.push_back({.range = range, .weights = CutLayout(layout, range).weights});
    if (s > 0) partitions_.back().link = others[size_t(s) - 1];
  }
}

PartitionSequencer::~PartitionSequencer() {
  if (outdated_) return;
  try {
    Tell({.kind = kOver});
  } catch (const std::exception&) {  // the run ends with an error that is known already
  }
}

void PartitionSequencer::SetWakeEvent(WakeEvent* wake) {
  for (const Partition& p : partitions_) {
    if (p.link) p.link->SetWakeEvent(wake);
  }
}

void PartitionSequencer::Tell(const Message& message) {
  for (const Partition& p : partitions_) {
    if (p.link) p.link->Send(message);
  }
}

// ---- begin, and moments of the whole

void PartitionSequencer::Load(const StateReader& reader, StateImage& own) {
  size_t weights = 0;
  for (const Partition& p : partitions_) weights += p.weights;
  memory_ = own;
  for (auto& [name, value] : memory_.entries()) {
    if (auto* tensor = std::get_if<StateImage::Values>(&value)) {
      Assign(*tensor, std::vector<float>(weights));
      reader.Tensor(name, tensor->shape, tensor->data);
    } else {
      value = reader.Int(name);
    }
  }
  own = PartOf(0, partitions_[0].weights);
  has_memory_ = true;
}

StateImage PartitionSequencer::PartOf(size_t begin, size_t weights) const {
  StateImage part = memory_;
  for (StateImage::Values* tensor : MemoryIn(part).tensors) {
    const std::vector<float> all = std::move(tensor->data);
    Assign(*tensor, std::span(all).subspan(begin, weights));
  }
  return part;
}

void PartitionSequencer::SendOut(int64_t life) {
  size_t at = 0;
  for (const Partition& p : partitions_) {
    if (p.link) {
      StateImage part = has_memory_ ? PartOf(at, p.weights) : StateImage();
      const auto state = std::span(whole_).subspan(p.range.begin, p.range.size);
      Message load = PackPartition(kLoad, state, has_memory_ ? &part : nullptr);
      load.ints.insert(load.ints.begin(), life);
      p.link->Send(std::move(load));
    }
    at += p.weights;
  }
}

void PartitionSequencer::Gather(std::span<const float> own_state, StateImage own) {
  Tell({.kind = kSave});
  StateImage part = own;  // for names and numbers
  memory_ = std::move(own);
  std::copy(own_state.begin(), own_state.end(), whole_.begin());
  for (Partition& p : partitions_) {
    if (!p.link) continue;
    for (;;) {
      Message message;
      const Arrival arrival = p.link->Receive(message, After(p.link->timeout_s()));
      if (arrival == Arrival::kNothing) {
        throw PeerLost(
            "server {} has not sent its partition of the centre for {:g} s (transport.timeout_s)",
            NumberOf(p), p.link->timeout_s());
      }
      if (arrival != Arrival::kMessage) {
        Miss(p, arrival);
        continue;
      }
      if (message.kind != kSaved) {
        early_.emplace_back(NumberOf(p), std::move(message));
        continue;
      }
      UnpackPartition(message, std::span(whole_).subspan(p.range.begin, p.range.size), part);
      Append(part);
      break;
    }
  }
  has_memory_ = true;
}

void PartitionSequencer::Append(StateImage& part) {
  const RuleMemory all = MemoryIn(memory_), next = MemoryIn(part);
  for (size_t i = 0; i < next.tensors.size(); ++i) {
    std::vector<float> values = std::move(all.tensors[i]->data);
    values.insert(values.end(), next.tensors[i]->data.begin(), next.tensors[i]->data.end());
    Assign(*all.tensors[i], values);
  }
}

// ---- pushes

// The partition of a server that was started again is lost: all go back to the last snapshot, from
// which another life of this one begins. Whoever supervises the processes of a machine starts all
// servers there again when one dies; so for one that is only gone this one waits.
void PartitionSequencer::Miss(Partition& p, Arrival arrival) {
  if (arrival == Arrival::kRenewed) {
    outdated_ = true;
    throw Outdated("server {} was restarted, and its partition of the centre is lost", NumberOf(p));
  }
  p.gone = arrival == Arrival::kGone;
  p.since = After(0);
}

bool PartitionSequencer::Hear(Owned owned) {
  bool heard = !early_.empty();
  for (const auto& [server, message] : std::exchange(early_, {})) Note(server, message, owned);
  Message message;
  for (Partition& p : partitions_) {
    if (!p.link) continue;
    for (;;) {
      const Arrival arrival = p.link->Receive(message, After(0));
      if (arrival == Arrival::kNothing) break;
      heard = true;
      if (arrival == Arrival::kMessage) {
        Note(NumberOf(p), message, owned);
      } else {
        Miss(p, arrival);
      }
    }
    if (p.gone && After(-p.link->timeout_s()) > p.since) {
      throw PeerLost(
          "server {} has been gone for {:g} s, and with it its partition of the centre "
          "(transport.timeout_s)",
          NumberOf(p), p.link->timeout_s());
    }
  }
  return heard;
}

void PartitionSequencer::Note(int server, const Message& message, Owned owned) {
  if (message.kind == kStop && message.ints.size() == 1) {
    signal_ = int(message.ints[0]);
    return;
  }
  if (message.kind != kHas || message.ints.size() != 3) {
    throw Error("unexpected message of kind {} with {} integers from a server to server 0",
                message.kind, message.ints.size());
  }
  const int64_t lease = message.ints[0];
  const int client = int(message.ints[1]);
  if (!owned(lease, client)) return Forget(lease, client);
  Mark& mark = marks_[lease];
  mark.client = client;
  mark.servers.insert(server);
  if (!message.ints[2]) mark.bad = true;
}

PartitionSequencer::Standing PartitionSequencer::Of(int64_t lease) const {
  const auto found = marks_.find(lease);
  if (found == marks_.end()) return Standing::kIncomplete;
  if (found->second.bad) return Standing::kBad;
  return found->second.servers.size() + 1 < partitions_.size() ? Standing::kIncomplete
                                                               : Standing::kComplete;
}

void PartitionSequencer::Apply(int64_t lease, int64_t samples, int64_t step, float share) {
  const auto mark = marks_.find(lease);
  TRIREME_ASSERT(mark != marks_.end());
  Tell(
      {.kind = kApply, .ints = {lease, mark->second.client, step, BitsOf(double(share)), samples}});
  marks_.erase(mark);
}

void PartitionSequencer::Forget(int64_t lease, int client) {
  Tell({.kind = kForget, .ints = {lease, client}});
}

void PartitionSequencer::Sweep(FunctionRef<bool(int64_t lease)> open) {
  for (auto it = marks_.begin(); it != marks_.end();) {
    if (open(it->first)) {
      ++it;
      continue;
    }
    Forget(it->first, it->second.client);
    it = marks_.erase(it);
  }
}

}  // namespace trireme
