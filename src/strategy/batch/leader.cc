#include "strategy/batch/leader.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace trireme {
namespace {

bool Is(const Message& message, BatchWord word) { return message.kind == int(word); }

}  // namespace

BatchLeader::BatchLeader(World& world, const Layout& layout, int num_portions, bool backups,
                         double stall_s)
    : peers_(world),
      layout_(layout),
      workers_(world.size() - 1),
      board_(num_portions, backups),
      idle_(size_t(workers_)),
      stats_(size_t(workers_)),
      idle_since_(size_t(workers_)),
      stall_s_(stall_s) {
  seen_.statistics.resize(layout.state - layout.weights);
  for (int w = 0; w < workers_; ++w) {
    stats_[size_t(w)].name = fmt::format("rank {}", w + 1);
    stats_[size_t(w)].here = true;
  }
}

void BatchLeader::TellAll(const Message& message) {
  for (int w = 0; w < workers_; ++w) peers_.Send(w + 1, message);
}

// Reports that come too late for their gradient are no answer to anything else.
bool BatchLeader::TakeLateReport(int worker, const Message& message) {
  if (!Is(message, BatchWord::kReport) || message.ints.size() < kReportInts) return false;
  if (message.ints[0] > round_ || !over_) return false;
  stats_[size_t(worker)].refused += message.ints.size() > kReportInts;
  if (message.ints[1]) signal_ = int(message.ints[1]);
  return true;
}

bool BatchLeader::Take(int worker, Message& message) {
  if (!peers_.Take(worker + 1, message)) return false;
  heard_s_ = Now();
  return true;
}

// For any of those that have not answered.
void BatchLeader::Wait(const std::vector<bool>& answered) {
  peers_.Wait();
  const double silent_s = Now() - heard_s_;
  if (stall_s_ <= 0 || silent_s < stall_s_) return;
  const auto first = std::ranges::find(answered, false) - answered.begin();
  throw Error("rank {} has not answered for {:.0f} s (trainer.stall_seconds)", first + 1, silent_s);
}

Message BatchLeader::Await(int worker, BatchWord word) {
  Message message;
  std::vector<bool> answered(size_t(workers_), true);
  answered[size_t(worker)] = false;
  heard_s_ = Now();
  for (;;) {
    if (!Take(worker, message)) {
      Wait(answered);
    } else if (Is(message, word)) {
      return message;
    } else if (!TakeLateReport(worker, message)) {
      peers_.Refuse(worker + 1, message);
    }
  }
}

double BatchLeader::Dot(int x, int y) {
  TellAll(Say(BatchWord::kDot, {x, y}));
  double sum = 0;
  for (int w = 0; w < workers_; ++w) {
    const Message value = Await(w, BatchWord::kValue);
    if (value.ints.size() != 1) peers_.Refuse(w + 1, value);
    sum += RealOf(value.ints[0]);
  }
  return sum;
}

void BatchLeader::Scale(double a, int x) { TellAll(Say(BatchWord::kScale, {x, BitsOf(a)})); }

void BatchLeader::Axpy(double a, int x, int y) {
  TellAll(Say(BatchWord::kAxpy, {x, y, BitsOf(a)}));
}

void BatchLeader::Copy(int from, int to) { TellAll(Say(BatchWord::kCopy, {from, to})); }

void BatchLeader::Put(int vector, std::span<const float> values) {
  for (int w = 0; w < workers_; ++w) {
    const Range range = StretchOf(layout_, w, workers_);
    const auto part = values.subspan(range.begin, range.size);
    peers_.Send(w + 1, Say(BatchWord::kPut, {vector}, {part.begin(), part.end()}));
  }
}

void BatchLeader::Get(int vector, std::span<float> values) {
  TellAll(Say(BatchWord::kGet, {vector}));
  for (int w = 0; w < workers_; ++w) {
    const Message stretch = Await(w, BatchWord::kStretch);
    const Range range = StretchOf(layout_, w, workers_);
    if (stretch.body.size() != range.size) peers_.Refuse(w + 1, stretch);
    std::ranges::copy(stretch.body, values.begin() + std::ptrdiff_t(range.begin));
  }
}

void BatchLeader::Show(int vector, std::span<const float> statistics) {
  TellAll(Say(BatchWord::kShow, {++round_, vector}, {statistics.begin(), statistics.end()}));
  for (int w = 0; w < workers_; ++w) Await(w, BatchWord::kShown);
}

double BatchLeader::Evaluate(int point, int gradient) {
  const Stopwatch watch;
  seen_.loss = seen_.correct = 0;
  std::ranges::fill(seen_.statistics, 0.0f);
  parts_ = 0;
  over_ = false;
  idle_.assign(idle_.size(), false);
  board_.Begin();
  TellAll(Say(BatchWord::kGradient, {++round_, point, gradient}));
  std::vector<double> penalties(size_t(workers_), 0.0);
  std::vector<bool> done(size_t(workers_), false);
  heard_s_ = Now();
  Message message;
  while (!std::ranges::all_of(done, std::identity())) {
    bool heard = false;
    for (int w = 0; w < workers_; ++w) {
      while (Take(w, message)) {
        heard = true;
        if (Is(message, BatchWord::kReport)) {
          HearReport(w, message);
        } else if (Is(message, BatchWord::kDone) && message.ints.size() == 2 &&
                   message.ints[0] == round_) {
          penalties[size_t(w)] = RealOf(message.ints[1]);
          done[size_t(w)] = true;
        } else {
          peers_.Refuse(w + 1, message);
        }
      }
    }
    if (!over_ && board_.over()) {
      over_ = true;
      TellAll(Say(BatchWord::kOver, {round_, parts_}));
      for (int w = 0; w < workers_; ++w) {
        if (idle_[size_t(w)]) stats_[size_t(w)].waited_s += Now() - idle_since_[size_t(w)];
      }
    }
    if (!heard) Wait(done);
  }
  waited_s_ += watch.seconds();
  double value = seen_.loss;
  for (const double penalty : penalties) value += penalty;
  return value;
}

void BatchLeader::SendNext(int worker, bool counts, int portion) {
  idle_[size_t(worker)] = portion < 0;
  if (portion < 0) idle_since_[size_t(worker)] = Now();
  peers_.Send(worker + 1,
              Say(BatchWord::kNext, {round_, counts, portion, board_.few_left(workers_)}));
}

void BatchLeader::HearReport(int worker, const Message& message) {
  if (TakeLateReport(worker, message)) return;
  const std::span<const int64_t> ints = message.ints;
  if (ints.size() < kReportInts || message.body.size() != seen_.statistics.size()) {
    peers_.Refuse(worker + 1, message);
  }
  ClientStats& stats = stats_[size_t(worker)];
  if (ints[1]) signal_ = int(ints[1]);
  const auto portions = ints.subspan(kReportInts);
  if (ints[0] != round_) {  // of an earlier gradient: nobody waits for it
    stats.refused += !portions.empty();
    return;
  }
  const bool counts = !portions.empty() && board_.Answer(worker, portions);
  if (counts) {
    ++parts_;
    ++stats.pushes;
    stats.samples += ints[3];
    seen_.loss += RealOf(ints[4]);
    seen_.correct += RealOf(ints[5]);
    for (size_t i = 0; i < message.body.size(); ++i) seen_.statistics[i] += message.body[i];
  } else {
    stats.refused += !portions.empty();
  }
  SendNext(worker, counts, board_.Take(worker).value_or(-1));
  if (ints[2] > 0) idle_[size_t(worker)] = false;  // it answers with what it holds
  if (!portions.empty() && !counts) AnswerIdle();
}

// What a part that does not count gave back.
void BatchLeader::AnswerIdle() {
  for (int w = 0; w < workers_; ++w) {
    if (!idle_[size_t(w)]) continue;
    const auto portion = board_.Take(w);
    if (!portion) continue;
    stats_[size_t(w)].waited_s += Now() - idle_since_[size_t(w)];
    SendNext(w, false, *portion);
  }
}

Traffic BatchLeader::traffic() const {
  return {.communication_s = waited_s_,
          .bytes_sent = peers_.sent(),
          .bytes_received = peers_.received()};
}

}  // namespace trireme
