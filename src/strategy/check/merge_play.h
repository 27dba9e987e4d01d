#pragma once
// For tests: what merges of workers and a server do, played in double by hand.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <ostream>
#include <utility>
#include <vector>

#include "strategy/check/toy_engine.h"

namespace trireme::hand {

constexpr int kWorkers = 3;
constexpr std::array<int64_t, kWorkers> kSamples = {10, 20, 45};  // of a push
constexpr double kUsualSamples = 20;

enum class Formula { kGradients, kPull, kHalve, kAverage, kGossip, kNeighbours, kMoves };

struct Row {
  const char* name;
  const char* merge;
  Formula formula;  // that it shall have
  OptimizerOptions optimizer;
  int period = 1;  // steps between meetings
  int fetch = 1;   // gradients: steps between looks at the centre
  float alpha = 0;
  bool rounds = false;
  float outer_momentum = 0;
  bool memory = false;  // the centre lies in remote memory

  bool Is(Formula other) const { return formula == other; }
};
inline void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

inline const toy::Model kModel(40);
inline const size_t kFloats = kModel.layout.state, kWeights = kModel.layout.weights;

// What a worker's step sees: the gradient of a weight, and the statistic.
inline double GradientAt(int worker, int step, size_t j, double weight) {
  return weight - toy::Target(worker, step, j);
}
inline double Statistic(int worker, int step) { return 1 + toy::Target(worker, step, 0); }

using Values = std::vector<double>;

struct Player {
  Values state, fetched;
  Values velocity = Values(kWeights), sum = Values(kFloats);
  int step = 0;           // how many were made
  int since = 0;          // the last meeting
  int old = 0;            // steps since the weights were taken
  int version = 0;        // ... by broadcast
  Values written, inbox;  // what it has written last; what others have left for it
  int inbox_version = 0, seen = 0;
  bool looks = false, finds = false;  // into its inbox, which `fetched` is then
  bool asked = false;                 // for the centre, which `fetched` is then
};

// `memory` is what SGD or Adagrad remembers of a weight.
inline void Move(const OptimizerOptions& o, double g, double& memory, double& weight) {
  if (o.name == "adagrad") {
    memory += g * g;
    weight -= o.lr * g / (std::sqrt(memory) + o.epsilon);
    return;
  }
  memory = o.momentum * memory + g;
  weight -= o.lr * (o.nesterov ? g + o.momentum * memory : memory);
}

class Play {
 public:
  explicit Play(const Row& row) : row_(row) {
    centre.assign(kModel.initial.begin(), kModel.initial.end());
    for (Player& p : players) p.state = p.written = centre;
    words = kWorkers;
  }

  void Begin(int worker) {
    Player& p = players[size_t(worker)];
    if (row_.Is(Formula::kPull) && p.since + 1 >= row_.period) Fetch(p);
    if (row_.Is(Formula::kGradients) && p.old >= row_.fetch) Take(p);
    if (MeetsNeighbours() && p.since + 1 >= row_.period) Look(p);
    if (std::exchange(p.asked, false)) p.state = p.written = p.fetched;
  }
  void End(int worker) {
    Player& p = players[size_t(worker)];
    Step(worker, p);
    ++p.old;
    const bool meets = ++p.since >= row_.period;
    if (row_.Is(Formula::kGradients) && !meets && p.old >= row_.fetch) Fetch(p);
    if (meets && !row_.rounds) Meet(worker);
  }
  // Also early: then a worker that fetches takes what holds its push at once.
  void Meet(int worker) {
    Player& p = players[size_t(worker)];
    const bool early = p.since < row_.period;
    if (std::exchange(p.since, 0) == 0) return;
    if (row_.Is(Formula::kPull) && early) Fetch(p);
    ++words;
    if (row_.Is(Formula::kGradients)) {
      Update(p);
      if (early || p.old >= row_.fetch) Fetch(p);
      if (early) Take(p);
    } else if (row_.Is(Formula::kPull)) {
      const double alpha = row_.alpha > 0 ? row_.alpha : 0.9 / kWorkers;
      for (size_t i = 0; i < kFloats; ++i) {
        const double pull = alpha * (p.state[i] - p.fetched[i]);
        p.state[i] -= pull;
        centre[i] += pull;
      }
    } else if (MeetsNeighbours()) {
      MeetNeighbours(p);
    } else if (row_.Is(Formula::kMoves)) {
      for (size_t i = 0; i < kFloats; ++i) centre[i] += p.state[i] - p.written[i];
      p.written = p.state;
      p.asked = true;
      Fetch(p);
    } else {
      Mix(worker, p);
    }
  }
  // All meet.
  void Round() {
    if (players[0].since < row_.period) return;
    const double samples = kSamples[0] + kSamples[1] + kSamples[2];
    for (size_t i = 0; i < kFloats; ++i) {
      double mean = 0;
      for (int w = 0; w < kWorkers; ++w) {
        mean += double(kSamples[size_t(w)]) / samples * players[size_t(w)].state[i];
      }
      if (i < kWeights) {
        memory_[i] = row_.outer_momentum * memory_[i] + mean - centre[i];
        centre[i] += memory_[i];
      } else {
        centre[i] = mean;
      }
    }
    for (Player& p : players) {
      p.state = centre;
      p.velocity.assign(kWeights, 0);
      p.since = 0;
      ++words;
    }
  }

  std::array<Player, kWorkers> players;
  Values centre;
  int64_t words = 0;  // fetches and pushes so far
  int mixed = 0;      // neighbours' weights that were

 private:
  bool MeetsNeighbours() const {
    return row_.Is(Formula::kGossip) || row_.Is(Formula::kNeighbours);
  }
  static void Look(Player& p) {
    if (std::exchange(p.looks, true)) return;
    p.finds = p.inbox_version > p.seen;
    p.seen = p.inbox_version;
    p.fetched = p.inbox;
  }
  // Keuper, Pfreundt 2015, with every other worker as a neighbour.
  void MeetNeighbours(Player& p) {
    Look(p);
    p.looks = false;
    double now = 0, before = 0;  // squared distances
    for (size_t j = 0; p.finds && j < kWeights; ++j) {
      now += (p.state[j] - p.fetched[j]) * (p.state[j] - p.fetched[j]);
      before += (p.written[j] - p.fetched[j]) * (p.written[j] - p.fetched[j]);
    }
    const double alpha = row_.alpha > 0 ? row_.alpha : 0.5;
    const bool mixes = p.finds && (row_.Is(Formula::kGossip) || now < before);
    mixed += mixes;
    for (size_t i = 0; i < kFloats; ++i) {
      if (mixes) p.state[i] += alpha * (p.fetched[i] - p.state[i]);
      centre[i] += (p.state[i] - p.written[i]) / kWorkers;
    }
    p.written = p.state;
    for (Player& other : players) {
      if (&other == &p) continue;
      other.inbox = p.state;
      ++other.inbox_version;
    }
  }
  void Fetch(Player& p) {
    p.fetched = centre;
    ++words;
  }
  static void Take(Player& p) {
    p.state = p.fetched;
    p.old = 0;
  }
  // Where gradients are pushed and weights fetched in every step, only the server moves them.
  void Step(int worker, Player& p) {
    const bool moves = !row_.Is(Formula::kGradients) || row_.period > 1 || row_.fetch > 1;
    const double part = 1.0 / (p.since + 1);
    for (size_t j = 0; j < kWeights; ++j) {
      const double g = GradientAt(worker, p.step, j, p.state[j]);
      p.sum[j] += g;
      if (moves) Move(row_.optimizer, g, p.velocity[j], p.state[j]);
    }
    const double seen = Statistic(worker, p.step);
    p.sum[kWeights] += part * (seen - p.sum[kWeights]);  // the mean of the steps
    if (moves) p.state[kWeights] += 0.1 * (seen - p.state[kWeights]);
    ++p.step;
  }
  void Update(Player& p) {
    for (size_t j = 0; j < kWeights; ++j) Move(row_.optimizer, p.sum[j], memory_[j], centre[j]);
    centre[kWeights] += 0.1 * (p.sum[kWeights] - centre[kWeights]);
    p.sum.assign(kFloats, 0);
  }
  void Mix(int worker, Player& p) {
    double a = 0.5;
    if (row_.Is(Formula::kAverage)) {
      const double share = row_.alpha > 0 ? row_.alpha : 1.0 / kWorkers;
      a = std::min(1.0, share * double(kSamples[size_t(worker)]) / kUsualSamples);
    }
    const Values pushed = p.state;
    if (std::exchange(p.version, version_) < version_) p.state = centre;  // without its own push
    for (size_t i = 0; i < kFloats; ++i) centre[i] = (1 - a) * centre[i] + a * pushed[i];
    ++version_;
    ++words;  // it awaits the broadcasts so far
  }

  const Row row_;
  Values memory_ = Values(kWeights);
  int version_ = 0;
};

}  // namespace trireme::hand
