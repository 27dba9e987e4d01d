#include "engine/cuda/tune.h"

#include <algorithm>
#include <limits>

#include "base/clock.h"
#include "base/error.h"
#include "engine/cuda/check.h"

namespace trireme::cuda {
namespace {

constexpr int kCalls = 3;             // of one measurement
constexpr double kClearly = 0.97;     // what takes more of the best time is not faster
constexpr double kNotWorth = 0.5e-6;  // seconds of a step

class Meter {
 public:
  Meter(CudaQueue& queue, size_t bytes)
      : queue_(queue), memory_(queue.card(), bytes, "measurements") {
    for (cudaEvent_t* event : {&began_, &ended_}) {
      Check(cudaEventCreate(event), "cudaEventCreate");
    }
    Check(cudaMemsetAsync(memory_.data(), 0, bytes, queue.stream()), "cudaMemsetAsync");
  }
  ~Meter() {
    cudaEventDestroy(began_);
    cudaEventDestroy(ended_);
  }
  Meter(const Meter&) = delete;

  // Seconds of one call; infinite where it cannot be.
  double Measure(const Tunable& t, int way) {
    auto* const memory = static_cast<std::byte*>(memory_.data());
    try {
      if (!t.run(way, memory)) return kNever;
      Check(cudaEventRecord(began_, queue_.stream()), "cudaEventRecord");
      for (int i = 0; i < kCalls; ++i) t.run(way, memory);
      Check(cudaEventRecord(ended_, queue_.stream()), "cudaEventRecord");
      queue_.Sync();
      float milliseconds = 0;
      Check(cudaEventElapsedTime(&milliseconds, began_, ended_), "cudaEventElapsedTime");
      return double(milliseconds) * 1e-3 / kCalls;
    } catch (const Error&) {
      return kNever;
    }
  }

  static constexpr double kNever = std::numeric_limits<double>::infinity();

 private:
  CudaQueue& queue_;
  const CardMemory memory_;
  cudaEvent_t began_ = nullptr, ended_ = nullptr;
};

class Search {
 public:
  Search(const Tunable& tunable, Meter& meter) : tunable_(&tunable), meter_(&meter) {}

  const Tunable& tunable() const { return *tunable_; }
  bool found() const { return best_ < Meter::kNever; }
  int way() const { return way_; }
  double best() const { return best_; }

  bool TryNext() {  // false: all ways were tried
    if (next_ >= tunable_->ways) return false;
    const double seconds = meter_->Measure(*tunable_, next_);
    if (seconds < (found() ? kClearly * best_ : Meter::kNever)) best_ = seconds, way_ = next_;
    ++next_;
    return true;
  }

  // Seconds of a step that another way might save, if it were as fast as the best of all that were
  // measured; less with each way that was none.
  double Hope(double flops_per_s, double bytes_per_s) const {
    if (next_ >= tunable_->ways || !found()) return 0;
    const double floor = std::max(tunable_->flops / flops_per_s, tunable_->bytes / bytes_per_s);
    return tunable_->uses * (best_ - floor) / next_;
  }

 private:
  const Tunable* tunable_;
  Meter* meter_;
  int next_ = 0, way_ = 0;
  double best_ = Meter::kNever;
};

void TuneWith(Meter& meter, const std::vector<Tunable>& tunables, double seconds,
              Choices& choices) {
  const Stopwatch watch;
  std::vector<Search> searches;
  for (const Tunable& tunable : tunables) {
    if (watch.seconds() > seconds) break;
    Search& search = searches.emplace_back(tunable, meter);
    while (!search.found() && search.TryNext()) {
    }
  }
  double flops = 1, bytes = 1;  // per second, at best
  const auto look = [&](const Search& search) {
    if (!search.found()) return;
    flops = std::max(flops, search.tunable().flops / search.best());
    bytes = std::max(bytes, search.tunable().bytes / search.best());
  };
  for (const Search& search : searches) look(search);
  const auto hope = [&](const Search& search) { return search.Hope(flops, bytes); };
  while (watch.seconds() < seconds) {
    const auto next = std::ranges::max_element(searches, {}, hope);
    if (next == searches.end() || hope(*next) < kNotWorth) break;
    next->TryNext();
    look(*next);
  }
  for (const Search& search : searches) {
    if (!search.found()) continue;
    search.tunable().take(search.way());
    choices.Set(search.tunable().key, search.way());
  }
}

}  // namespace

void Tune(std::vector<Tunable> tunables, CudaQueue& queue, double seconds, Choices& choices) {
  if (tunables.empty()) return;
  size_t bytes = 0;
  for (const Tunable& tunable : tunables) bytes = std::max(bytes, tunable.memory);
  if (bytes > queue.card().free_bytes()) return;
  try {
    Meter meter(queue, bytes);
    TuneWith(meter, tunables, seconds, choices);
    queue.Sync();
  } catch (const Error&) {  // no memory after all; the libraries' advice stays
    return;
  }
  choices.Save();
}

}  // namespace trireme::cuda
