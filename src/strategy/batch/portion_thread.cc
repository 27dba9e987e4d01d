#include "strategy/batch/portion_thread.h"

#include <utility>

#include "base/denormals.h"
#include "flat/arithmetic.h"
#include "flat/staging.h"

namespace trireme {
namespace {

constexpr size_t kPartPortions = 4;

}  // namespace

PortionThread::PortionThread(Setup setup)
    : setup_(std::move(setup)),
      workers_(setup_.peers.size() - 1),
      sum_(setup_.portions.device(), setup_.layout.summand),
      thread_([this] { Run(); }) {}

PortionThread::~PortionThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PortionThread::Begin(int64_t round, std::vector<float> weights) {
  {
    const std::lock_guard lock(mutex_);
    wanted_round_ = round;
    weights_ = std::move(weights);
  }
  changed_.notify_all();
}

void PortionThread::Next(const Message& message) {
  if (message.ints.size() != 4) setup_.peers.Refuse(0, message);
  {
    const std::lock_guard lock(mutex_);
    answers_.push_back({.round = message.ints[0],
                        .counts = message.ints[1] != 0,
                        .portion = int(message.ints[2]),
                        .few = message.ints[3] != 0});
  }
  changed_.notify_all();
}

void PortionThread::Over(int64_t round) {
  {
    const std::lock_guard lock(mutex_);
    over_round_ = round;
  }
  changed_.notify_all();
}

void PortionThread::AwaitIdle() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return finished_round_ >= wanted_round_ || error_; });
}

std::vector<Message> PortionThread::TakeParts() {
  const std::lock_guard lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  return std::exchange(own_, {});
}

void PortionThread::Run() {
  try {
    const DenormalsOff denormals_off;
    for (int64_t done = 0;;) {
      std::vector<float> weights;
      {
        std::unique_lock lock(mutex_);
        finished_round_ = done;
        changed_.notify_all();
        changed_.wait(lock, [&] { return ends_ || wanted_round_ > done; });
        if (ends_) return;
        done = wanted_round_;
        weights = std::move(weights_);
      }
      PortionGradient& portions = setup_.portions;
      flat::PutNow(portions.queue(), weights, portions.state().Sub(0, weights.size()));
      Compute(done);
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    error_ = std::current_exception();
  }
  changed_.notify_all();
  setup_.peers.Wake();
}

void PortionThread::Compute(int64_t round) {
  DropPart();
  Report(round, false);
  Answer answer;
  while (AwaitAnswer(round, answer)) {
    if (std::exchange(reported_, false)) {
      if (answer.counts) SendPart(round);
      DropPart();
    }
    if (answer.portion >= 0) RunPortion(answer.portion);
    const bool whole = answer.portion < 0 || answer.few || part_.size() >= kPartPortions;
    // Without a portion and with nothing in hand it waits for one that another gives back.
    if (answer.portion >= 0 || !part_.empty()) Report(round, whole);
  }
}

// What counts is sent even where the gradient is over: it is over with this part.
bool PortionThread::AwaitAnswer(int64_t round, Answer& answer) {
  std::unique_lock lock(mutex_);
  for (;;) {
    while (!answers_.empty() && answers_.front().round < round) answers_.pop_front();
    if (!answers_.empty()) break;
    if (ends_ || over_round_ >= round) return false;
    changed_.wait(lock);
  }
  answer = answers_.front();
  answers_.pop_front();
  return true;
}

void PortionThread::DropPart() {
  part_.clear();
  sums_ = {};
  reported_ = false;
}

void PortionThread::RunPortion(int portion) {
  setup_.portions.Want(portion);
  const PortionSums sums = setup_.portions.Run(sum_, !part_.empty());
  part_.push_back(portion);
  sums_.samples += sums.samples;
  sums_.loss += sums.loss;
  sums_.correct += sums.correct;
}

void PortionThread::Report(int64_t round, bool part) {
  {
    const std::lock_guard lock(mutex_);
    if (over_round_ >= round) return;  // nobody listens
  }
  const Layout& layout = setup_.layout;
  std::vector<int64_t> ints = {round,         setup_.signal(),    part ? 0 : int64_t(part_.size()),
                               sums_.samples, BitsOf(sums_.loss), BitsOf(sums_.correct)};
  std::vector<float> statistics(layout.state - layout.weights);
  if (part) {
    ints.insert(ints.end(), part_.begin(), part_.end());
    const Slice seen = sum_.slice().Sub(layout.weights, statistics.size());
    flat::GetNow(setup_.portions.queue(), seen, statistics);
  }
  reported_ = part;
  setup_.peers.Send(0, Say(BatchWord::kReport, std::move(ints), std::move(statistics)));
}

void PortionThread::SendPart(int64_t round) {
  for (int w = 0; w < workers_; ++w) {
    const Range range = StretchOf(setup_.layout, w, workers_);
    std::vector<float> values(range.size);
    flat::GetNow(setup_.portions.queue(), sum_.slice().Sub(range.begin, range.size), values);
    Message part = Say(BatchWord::kPart, {round}, std::move(values));
    if (w + 1 != setup_.peers.rank()) {
      setup_.peers.Send(w + 1, std::move(part));
      continue;
    }
    const std::lock_guard lock(mutex_);
    own_.push_back(std::move(part));
  }
  setup_.peers.Wake();
}

}  // namespace trireme
