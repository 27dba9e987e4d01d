#include "engine/cuda/capture.h"

#include <exception>

#include "engine/cuda/check.h"
#include "engine/cuda/memset_nodes.h"

namespace trireme::cuda {
namespace {

constexpr size_t kMostStretches = 1024;  // whose shards all differ gains nothing by more

}  // namespace

Replays::~Replays() {
  for (const auto& [key, stretch] : stretches_) {
    if (stretch.graph) cudaGraphExecDestroy(stretch.graph);
  }
}

void Replays::Run(const StretchKey& key, FunctionRef<void()> work) {
  auto found = stretches_.find(key);
  if (found == stretches_.end()) {
    if (stretches_.size() >= kMostStretches) return work();
    found = stretches_.emplace(key, Stretch()).first;
  }
  Stretch& stretch = found->second;
  if (stretch.stage == Stretch::kHasRun) Capture(stretch, work);
  if (stretch.stage == Stretch::kCaptured) {
    return Check(cudaGraphLaunch(stretch.graph, stream_), "cudaGraphLaunch");
  }
  work();
  if (stretch.stage == Stretch::kNew) stretch.stage = Stretch::kHasRun;
}

// Other threads may go on to use the card meanwhile: only what this one does is captured.
void Replays::Capture(Stretch& stretch, FunctionRef<void()> work) {
  stretch.stage = Stretch::kRefused;
  Check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  std::string refusal;
  try {
    work();
  } catch (const std::exception& error) {
    refusal = error.what();
  }
  cudaGraph_t graph = nullptr;
  cudaError_t status = cudaStreamEndCapture(stream_, &graph);
  if (refusal.empty() && status == cudaSuccess) {
    try {
      ReplaceMemsetNodes(graph);
    } catch (const std::exception& error) {
      refusal = error.what();
    }
    status = cudaGraphInstantiate(&stretch.graph, graph, 0);
  }
  if (graph) cudaGraphDestroy(graph);
  if (!refusal.empty() || status != cudaSuccess) {
    cudaGetLastError();
    refusal_ = refusal.empty() ? cudaGetErrorString(status) : refusal;
    return;  // if it was more than the capture, the next try says so
  }
  stretch.stage = Stretch::kCaptured;
  ++graphs_;
}

}  // namespace trireme::cuda
