#include "strategy/batch/batch_worker.h"

#include <algorithm>
#include <utility>

#include "flat/arithmetic.h"
#include "flat/staging.h"

namespace trireme {

BatchWorker::BatchWorker(Setup setup)
    : setup_(std::move(setup)),
      peers_(setup_.world),
      worker_(peers_.rank() - 1),
      workers_(peers_.size() - 1),
      queue_(setup_.portions.device().NewQueue()),
      vectors_(setup_.portions.device(), *queue_, setup_.layout,
               StretchOf(setup_.layout, worker_, workers_), setup_.vectors, setup_.decay),
      scratch_(setup_.portions.device(), vectors_.stretch().size),
      arrived_(size_t(workers_)),
      thread_({setup_.portions, setup_.layout, peers_, setup_.signal}) {}

int BatchWorker::Serve() {
  Message message;
  while (!ended_) {
    bool heard = HearWorkers();
    while (!ended_ && peers_.Take(0, message)) {
      HearLeader(message);
      heard = true;
    }
    if (!heard) peers_.Wait();
  }
  return signal_;
}

bool BatchWorker::HearWorkers() {
  bool heard = false;
  Message message;
  for (int r = 1; r < peers_.size(); ++r) {
    while (r != peers_.rank() && peers_.Take(r, message)) {
      HearWorker(r, std::move(message));
      heard = true;
    }
  }
  for (Message& part : thread_.TakeParts()) {
    HearWorker(peers_.rank(), std::move(part));
    heard = true;
  }
  return heard;
}

void BatchWorker::HearLeader(const Message& message) {
  const std::span<const int64_t> ints = message.ints;
  const auto vector = [&](size_t i) {
    if (ints[i] < 0 || ints[i] >= vectors_.count()) peers_.Refuse(0, message);
    return int(ints[i]);
  };
  const auto is = [&](BatchWord word, size_t numbers) {
    return message.kind == int(word) && ints.size() == numbers;
  };
  if (is(BatchWord::kDot, 2)) {
    const double sum = vectors_.Dot(vector(0), vector(1));
    peers_.Send(0, Say(BatchWord::kValue, {BitsOf(sum)}));
  } else if (is(BatchWord::kScale, 2)) {
    vectors_.Scale(RealOf(ints[1]), vector(0));
  } else if (is(BatchWord::kAxpy, 3)) {
    vectors_.Axpy(RealOf(ints[2]), vector(0), vector(1));
  } else if (is(BatchWord::kCopy, 2)) {
    vectors_.Copy(vector(0), vector(1));
  } else if (is(BatchWord::kPut, 1) && message.body.size() == vectors_.stretch().size) {
    vectors_.Put(vector(0), message.body);
  } else if (is(BatchWord::kGet, 1)) {
    std::vector<float> values(vectors_.stretch().size);
    vectors_.Get(vector(0), values);
    peers_.Send(0, Say(BatchWord::kStretch, {round_, worker_}, std::move(values)));
  } else if (is(BatchWord::kGradient, 3)) {
    point_ = vector(1);
    gradient_ = vector(2);
    BeginGradient(message);
  } else if (message.kind == int(BatchWord::kNext)) {
    thread_.Next(message);
  } else if (is(BatchWord::kOver, 2) && ints[0] == round_) {
    thread_.Over(round_);
    expected_ = ints[1];
    FinishIfComplete();
  } else if (is(BatchWord::kShow, 2)) {
    vector(1);
    ShowState(message);
  } else if (is(BatchWord::kMeet, 1)) {
    setup_.meet(ints[0]);
  } else if (is(BatchWord::kEnd, 1)) {
    ended_ = true;
    signal_ = int(ints[0]);
  } else {
    peers_.Refuse(0, message);
  }
}

// A worker that the leader told earlier may be ahead.
void BatchWorker::HearWorker(int rank, Message message) {
  if (message.ints.empty()) peers_.Refuse(rank, message);
  const int64_t round = message.ints[0];
  const bool part = message.kind == int(BatchWord::kPart);
  if (round > round_ || (part && round == round_ && !adding_)) {
    early_.push_back(std::move(message));
  } else if (part && round == round_ && message.body.size() == scratch_.slice().size) {
    AddPart(message);
  } else if (message.kind == int(BatchWord::kStretch) && round == round_ &&
             message.ints.size() == 2) {
    const int64_t from = message.ints[1];
    const bool known = from >= 0 && from < workers_ && !arrived_[size_t(from)];
    const Range range = known ? StretchOf(setup_.layout, int(from), workers_) : Range{};
    if (!known || message.body.size() != range.size) peers_.Refuse(rank, message);
    std::ranges::copy(message.body, whole_.begin() + std::ptrdiff_t(range.begin));
    arrived_[size_t(from)] = true;
    ++num_arrived_;
  } else {
    peers_.Refuse(rank, message);
  }
}

// All of a vector: every worker sends every other one its stretch.
std::vector<float> BatchWorker::Gather(int64_t round, int vector) {
  round_ = round;
  adding_ = false;
  parts_ = 0;
  expected_ = -1;
  whole_.assign(setup_.layout.weights, 0);
  arrived_.assign(arrived_.size(), false);
  arrived_[size_t(worker_)] = true;
  num_arrived_ = 1;
  const Range own = vectors_.stretch();
  const auto values = std::span(whole_).subspan(own.begin, own.size);
  vectors_.Get(vector, values);
  for (int w = 0; w < workers_; ++w) {
    if (w == worker_) continue;
    peers_.Send(w + 1, Say(BatchWord::kStretch, {round, worker_}, {values.begin(), values.end()}));
  }
  for (Message& message : std::exchange(early_, {})) HearWorker(-1, std::move(message));
  while (num_arrived_ < workers_) {
    if (!HearWorkers()) peers_.Wait();
  }
  return std::move(whole_);
}

void BatchWorker::BeginGradient(const Message& message) {
  const int64_t round = message.ints[0];
  std::vector<float> weights = Gather(round, point_);
  flat::Fill(*queue_, 0, vectors_.at(gradient_));
  adding_ = true;
  for (Message& part : std::exchange(early_, {})) HearWorker(-1, std::move(part));
  thread_.Begin(round, std::move(weights));
}

void BatchWorker::AddPart(const Message& message) {
  flat::PutNow(*queue_, message.body, scratch_);
  flat::Add(*queue_, scratch_, vectors_.at(gradient_));
  ++parts_;
  FinishIfComplete();
}

void BatchWorker::FinishIfComplete() {
  if (parts_ != expected_) return;
  expected_ = -1;
  const double penalty = vectors_.AddPenalty(point_, gradient_);
  peers_.Send(0, Say(BatchWord::kDone, {round_, BitsOf(penalty)}));
}

void BatchWorker::ShowState(const Message& message) {
  const std::vector<float> weights = Gather(message.ints[0], int(message.ints[1]));
  thread_.AwaitIdle();
  PortionGradient& portions = setup_.portions;
  const Slice state = portions.state();
  flat::PutNow(portions.queue(), weights, state.Sub(0, weights.size()));
  flat::PutNow(portions.queue(), message.body, state.Sub(weights.size(), message.body.size()));
  peers_.Send(0, Say(BatchWord::kShown));
}

Traffic BatchWorker::traffic() const {
  return {.bytes_sent = peers_.sent(), .bytes_received = peers_.received()};
}

}  // namespace trireme
