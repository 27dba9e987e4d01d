#pragma once
#include <cuda_runtime_api.h>

#include <compare>
#include <cstddef>
#include <map>
#include <string>

#include "base/function_ref.h"

namespace trireme::cuda {

// What tells stretches of a program's work apart: two with equal keys enqueue the same calls with
// the same arguments.
struct StretchKey {
  int first = 0, last = 0;  // instructions
  int samples = 0;
  int slot = 0;  // where they lie
  bool accumulate = false;
  bool mixed = false;  // of two classes
  const float* state = nullptr;
  const float* summand = nullptr;
  auto operator<=>(const StretchKey&) const = default;
};

// Work of one stream that comes again and again. The first time it is enqueued as it is, so that
// whatever loads or allocates at first use has done so; the second time it is captured into a CUDA
// graph; from then on a single launch enqueues it all. One thread at a time; drain the stream
// before it goes away.
class Replays {
 public:
  explicit Replays(cudaStream_t stream) : stream_(stream) {}
  ~Replays();
  Replays(const Replays&) = delete;

  // Enqueues what `work` enqueues, which waits for nothing and allocates nothing from the second
  // time on. What cannot be captured is enqueued call by call every time.
  void Run(const StretchKey& key, FunctionRef<void()> work);

  int graphs() const { return graphs_; }
  const std::string& refusal() const { return refusal_; }  // why work could not be captured

 private:
  struct Stretch {
    enum { kNew, kHasRun, kCaptured, kRefused } stage = kNew;
    cudaGraphExec_t graph = nullptr;
  };
  void Capture(Stretch& stretch, FunctionRef<void()> work);

  const cudaStream_t stream_;
  std::map<StretchKey, Stretch> stretches_;
  int graphs_ = 0;
  std::string refusal_;
};

}  // namespace trireme::cuda
