#include "transport/mpi/group.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/assert.h"
#include "transport/mpi/patience.h"

namespace trireme {
namespace {

constexpr int kNobody = -1;
constexpr int kNewsTag = 0;
constexpr int kNewsEvery = 8;  // passes
// Of a native sum at a time. Open MPI 4.1 adds 47 MB of 2 ranks in 70 ms as a whole (it takes and
// touches new memory as large), in 28 ms in such pieces; its blocking MPI_Allreduce needs 29 ms,
// but has no deadline.
constexpr size_t kSumBytes = 1 << 20;
constexpr double kLastMoment_s = 0.5;  // for what is on its way when a group ends

}  // namespace

MpiGroup::MpiGroup(const MpiLibrary& library, Place place, double timeout_s, size_t piece_bytes)
    : library_(library), place_(place), timeout_s_(timeout_s), piece_bytes_(piece_bytes) {
  constexpr size_t kAtATime = 64;  // transfers; more are possible
  waiting_.reserve(kAtATime);
  moving_.reserve(kAtATime);
  telling_.reserve(size());
  for (size_t i = 0; i < kAtATime; ++i) free_.push_back(&nodes_.emplace_back());
}

Ticket MpiGroup::Send(int to, Tag tag, std::span<const std::byte> bytes) {
  return Post(Kind::kSend, to, tag, const_cast<std::byte*>(bytes.data()), bytes.size());
}

Ticket MpiGroup::Receive(int from, Tag tag, std::span<std::byte> bytes) {
  return Post(Kind::kReceive, from, tag, bytes.data(), bytes.size());
}

Ticket MpiGroup::Post(Kind kind, int peer, Tag tag, std::byte* data, size_t size) {
  TRIREME_ASSERT(peer >= 0 && peer < this->size() && tag >= 0);
  if (tag > place_.largest_tag) {
    throw Error(
        "rank {} of {}: tag {} is above this MPI library's limit of {}; there are too many groups",
        rank(), this->size(), tag, place_.largest_tag);
  }
  MpiTurn turn(turns_, MpiTurn::kCaller);
  if (finished_) throw PeerLost(Lost());
  Node& node = NewNode(kind, peer, tag, data, size);
  if (kind == Kind::kSend) {
    StartSend(node);
  } else {
    Stream& stream = StreamOf(peer, tag);
    stream.nodes.push_back(&node);
    if (stream.nodes.size() == 1 && Match(stream)) waiting_.push_back(&stream);
  }
  return Ticket(&node);
}

bool MpiGroup::NativeSum(std::span<float> values) {
  const size_t most = std::min(kSumBytes, piece_bytes_) / sizeof(float);
  Ticket moving[2];  // the next piece starts while the one before ends
  for (size_t begin = 0, i = 0; begin < values.size(); begin += most, i = 1 - i) {
    moving[i].Wait();
    moving[i] = StartSum(values.subspan(begin, std::min(most, values.size() - begin)));
  }
  for (Ticket& ticket : moving) ticket.Wait();
  return true;
}

Ticket MpiGroup::StartSum(std::span<float> values) {
  MpiTurn turn(turns_, MpiTurn::kCaller);
  if (finished_) throw PeerLost(Lost());
  Node& node = NewNode(Kind::kSum, kNobody, 0, nullptr, values.size_bytes());
  if (Ok(mpi().sum(values.data(), int(values.size()), &node.requests.emplace_back()), node.peer)) {
    node.stage = Stage::kMoving;
    moving_.push_back(&node);
  } else {
    node.requests.clear();
  }
  return Ticket(&node);
}

void MpiGroup::Wait(Node& node) {
  for (Patience patience;; patience.Pause()) {
    MpiTurn turn(turns_, MpiTurn::kPoller);
    if (node.stage == Stage::kWaiting || node.stage == Stage::kMoving) Pass();
    if (node.stage == Stage::kDone) return;
    if (node.stage == Stage::kFailed) throw Error(node.error);
    if (!finished_ && After(0) >= node.deadline) Silent(node);
    if (finished_) throw PeerLost(Lost());
  }
}

void MpiGroup::Finish(Node& node) noexcept {
  for (Patience patience;; patience.Pause()) {
    MpiTurn turn(turns_, MpiTurn::kPoller);
    if (TakeBack(node)) {
      free_.push_back(&node);
      return;
    }
    Pass();
    if (!finished_ && After(0) >= node.deadline) Silent(node);
  }
}

bool MpiGroup::TakeBack(Node& node) {
  if (!finished_) return node.requests.empty() && node.stage != Stage::kWaiting;
  if (node.kind == Kind::kReceive && node.stage == Stage::kWaiting) {
    Stream& stream = StreamOf(node.peer, node.tag);
    std::erase(stream.nodes, &node);
    if (stream.nodes.empty()) std::erase(waiting_, &stream);
    node.stage = Stage::kFailed;
    if (!node.requests.empty()) moving_.push_back(&node);  // first pieces may still be arriving
  }
  if (node.requests.empty()) return true;
  if (After(0) < last_moment_) return false;
  if (node.kind != Kind::kSend) {
    if (After(0) < node.deadline) return false;
    // MPI writes to memory that its owner wants back, and no call can stop it.
    std::fprintf(stderr, "%s\n", Lost().c_str());
    mpi().end(1);
  }
  // A peer that has heard of the end fetches it no more.
  std::erase(moving_, &node);
  node.requests.clear();
  return true;
}

void MpiGroup::Pass() {
  std::erase_if(waiting_, [&](Stream* stream) { return !Match(*stream); });
  for (Node* node : moving_) Test(*node);
  std::erase_if(moving_, [](const Node* node) { return node->requests.empty(); });
  if (++passes_ % kNewsEvery == 0) ReadNews();
}

void MpiGroup::StartSend(Node& node) {
  node.stage = Stage::kMoving;
  // A message ends with a piece that is not full, so that its end can be seen: perhaps an empty
  // one.
  for (bool last = false; !last;) {
    const size_t piece = std::min(piece_bytes_, node.size - node.posted);
    last = piece < piece_bytes_;
    if (!Ok(mpi().send(TRIREME_MPI_DATA, node.peer, node.tag, node.data + node.posted, int(piece),
                       &node.requests.emplace_back()),
            node.peer)) {
      node.requests.pop_back();
      node.stage = Stage::kWaiting;  // for ever
      break;
    }
    node.posted += piece;
  }
  Test(node);  // a short one is often gone at once
  if (!node.requests.empty()) moving_.push_back(&node);
}

// Gives the stream's receives the messages that are there; false: no receive is left waiting.
bool MpiGroup::Match(Stream& stream) {
  while (!stream.nodes.empty() && !finished_) {
    Node& node = *stream.nodes.front();
    int found = 0, bytes = 0;
    TriremeMpiHandle message;
    if (!Ok(mpi().find(TRIREME_MPI_DATA, stream.from, stream.tag, &found, &bytes, &message),
            node.peer)) {
      return true;
    }
    if (!found) return true;
    const size_t piece = std::min(piece_bytes_, node.size - node.posted);
    if (size_t(bytes) != piece) {
      stream.nodes.erase(stream.nodes.begin());
      Refuse(node, size_t(bytes));
      break;
    }
    if (!Ok(mpi().receive(&message, node.data + node.posted, bytes, &node.requests.emplace_back()),
            node.peer)) {
      node.requests.pop_back();
      return true;
    }
    node.posted += piece;
    node.deadline = After(timeout_s_);  // the peer is not silent
    if (piece == piece_bytes_) continue;
    stream.nodes.erase(stream.nodes.begin());
    node.stage = Stage::kMoving;
    moving_.push_back(&node);
  }
  return !stream.nodes.empty();
}

void MpiGroup::Refuse(Node& node, size_t found) {
  node.stage = Stage::kFailed;
  node.error = fmt::format("rank {} of {} expects {} bytes from rank {}, which sends {}{} (tag {})",
                           rank(), size(), node.size, node.peer, node.posted + found,
                           found == piece_bytes_ ? " or more" : "", node.tag);
  if (!node.requests.empty()) moving_.push_back(&node);
  Lose(rank(), node.error);  // the sender may be through with it and far away: it ends for all
}

void MpiGroup::Test(Node& node) {
  while (!node.requests.empty()) {
    int done = 0;
    if (!Ok(mpi().test(&node.requests.front(), &done), node.peer)) {
      node.requests.clear();  // an error completes a request
      return;
    }
    if (!done) return;
    node.requests.erase(node.requests.begin());
    node.deadline = After(timeout_s_);
  }
  if (node.stage != Stage::kMoving) return;
  node.stage = Stage::kDone;
  const uint64_t ring = 2 * uint64_t(node.size) * (size() - 1) / size();  // the least for a sum
  if (node.kind != Kind::kReceive) volume_.sent += node.kind == Kind::kSum ? ring : node.size;
  if (node.kind != Kind::kSend) volume_.received += node.kind == Kind::kSum ? ring : node.size;
}

void MpiGroup::ReadNews() {
  if (finished_) return;
  int found = 0, bytes = 0, done = 0;
  TriremeMpiHandle message, request;
  if (mpi().find(TRIREME_MPI_NEWS, TRIREME_MPI_ANY, kNewsTag, &found, &bytes, &message) != 0)
    return;
  if (!found || bytes != int(sizeof(News))) return;
  if (mpi().receive(&message, &news_, bytes, &request) != 0) return;
  while (!done) {  // short messages travel as a whole: it is here
    if (mpi().test(&request, &done) != 0) break;
  }
  news_.reason[sizeof(news_.reason) - 1] = '\0';
  finished_ = true;
  last_moment_ = After(kLastMoment_s);
  // Whoever sent the news has an error to print: let it be the first, and the one that ends the
  // job.
  mpi().set_patience(3000);
}

void MpiGroup::Lose(int lost, std::string_view reason) {
  if (finished_) return;
  finished_ = true;
  last_moment_ = After(kLastMoment_s);
  news_.lost = lost;
  reason = reason.substr(0, sizeof(news_.reason) - 1);
  std::memcpy(news_.reason, reason.data(), reason.size());
  news_.reason[reason.size()] = '\0';
  for (int r = 0; r < size(); ++r) {
    TriremeMpiHandle request;
    if (r == rank()) continue;
    if (mpi().send(TRIREME_MPI_NEWS, r, kNewsTag, &news_, sizeof(news_), &request) == 0) {
      telling_.push_back(request);
    }
  }
}

void MpiGroup::Silent(Node& node) {
  if (node.kind == Kind::kSum) {
    Lose(kNobody,
         fmt::format("a sum of all ranks did not finish within {:g} s (transport.timeout_s)",
                     timeout_s_));
    return;
  }
  Lose(node.peer, fmt::format("rank {} {} it for {:g} s (transport.timeout_s)", rank(),
                              node.kind == Kind::kSend ? "has been unable to send to"
                                                       : "has heard nothing from",
                              timeout_s_));
}

bool MpiGroup::Ok(int error, int peer) {
  if (error == 0) return true;
  Lose(peer, fmt::format("rank {}: {}", rank(), library_.Explain(error)));
  return false;
}

std::optional<std::string> MpiGroup::Loss() const {
  if (!finished_) return std::nullopt;
  return Lost();
}

std::string MpiGroup::Lost() const {
  const std::string who = fmt::format("rank {} of {}", rank(), size());
  if (news_.lost == kNobody) return fmt::format("{}: {}", who, news_.reason);
  return fmt::format("{}: rank {} is lost: {}", who, news_.lost, news_.reason);
}

void MpiGroup::Abort(std::string_view reason) noexcept {
  MpiTurn turn(turns_, MpiTurn::kCaller);
  Lose(rank(), reason);
}

Volume MpiGroup::volume() const {
  MpiTurn turn(turns_, MpiTurn::kCaller);
  return volume_;
}

bool MpiGroup::finished() const {
  MpiTurn turn(turns_, MpiTurn::kCaller);
  return finished_;
}

void MpiGroup::Depart() noexcept {
  const Deadline end = After(kLastMoment_s);
  for (Patience patience; After(0) < end; patience.Pause()) {
    MpiTurn turn(turns_, MpiTurn::kPoller);
    std::erase_if(telling_, [&](TriremeMpiHandle& request) {
      int done = 0;
      return mpi().test(&request, &done) != 0 || done;
    });
    if (telling_.empty()) return;
  }
}

MpiGroup::Node& MpiGroup::NewNode(Kind kind, int peer, Tag tag, std::byte* data, size_t size) {
  if (free_.empty()) {
    free_.push_back(&nodes_.emplace_back());
    if (free_.capacity() < nodes_.size()) free_.reserve(2 * nodes_.size());  // for giving back
  }
  Node& node = *free_.back();
  free_.pop_back();
  node.group = this;
  node.kind = kind;
  node.peer = peer;
  node.tag = tag;
  node.data = data;
  node.size = size;
  node.posted = 0;
  node.requests.clear();
  node.deadline = After(timeout_s_);
  node.stage = Stage::kWaiting;
  node.error.clear();
  return node;
}

MpiGroup::Stream& MpiGroup::StreamOf(int from, Tag tag) {
  return streams_.try_emplace({from, tag}, Stream{from, tag, {}}).first->second;
}

}  // namespace trireme
