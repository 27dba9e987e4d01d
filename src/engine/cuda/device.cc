#include "engine/cuda/device.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/text.h"
#include "engine/cuda/check.h"
#include "engine/cuda/flat_table.h"
#include "engine/cuda/pinned.h"

namespace trireme::cuda {
namespace {

constexpr std::string_view kSlices = "weights, gradients, optimizer and sets of samples";

}  // namespace

CudaDevice::CudaDevice(int index, size_t most_bytes)
    : index_(index), name_(fmt::format("cuda:{}", index)), most_bytes_(most_bytes) {
  Select();
  Check(cudaGetDeviceProperties(&properties_, index_), "cudaGetDeviceProperties");
  Check(cudaStreamCreateWithFlags(&zeroing_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  clock_.Start(zeroing_);
}

CudaDevice::~CudaDevice() { cudaStreamDestroy(zeroing_); }

const FlatTable& CudaDevice::table() const { return kCudaTable; }

std::unique_ptr<Queue> CudaDevice::NewQueue() { return std::make_unique<CudaQueue>(*this); }

void CudaDevice::Select() const { Check(cudaSetDevice(index_), "cudaSetDevice"); }

Slice CudaDevice::Allocate(size_t floats) {
  if (floats == 0) return {nullptr, 0, this};
  if (floats > std::numeric_limits<size_t>::max() / sizeof(float)) {
    throw Error("{}: no memory for {} floats", name_, floats);
  }
  const size_t bytes = floats * sizeof(float);
  void* const memory = AllocateBytes(bytes, kSlices);
  try {
    Check(cudaMemsetAsync(memory, 0, bytes, zeroing_), "cudaMemsetAsync");
    Check(cudaStreamSynchronize(zeroing_), "cudaStreamSynchronize");
  } catch (...) {
    FreeBytes(memory);
    throw;
  }
  return {static_cast<float*>(memory), floats, this};
}

void CudaDevice::Free(Slice slice) noexcept { FreeBytes(slice.data); }

void* CudaDevice::AllocateBytes(size_t bytes, std::string_view what) {
  if (bytes == 0) return nullptr;
  Select();
  const std::lock_guard lock(mutex_);
  if (most_bytes_ > 0 && bytes > most_bytes_ - std::min(most_bytes_, allocated_)) {
    ThrowNoMemory(bytes, what);
  }
  void* memory = nullptr;
  const cudaError_t status = cudaMalloc(&memory, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    ThrowNoMemory(bytes, what);
  }
  Check(status, "cudaMalloc");
  const auto used = used_.try_emplace(std::string(what)).first;
  used->second += bytes;
  allocated_ += bytes;
  blocks_[memory] = {bytes, used->first};
  return memory;
}

void CudaDevice::FreeBytes(void* memory) noexcept {
  if (!memory) return;
  cudaSetDevice(index_);
  const std::lock_guard lock(mutex_);
  const auto block = blocks_.find(memory);
  TRIREME_ASSERT(block != blocks_.end());
  used_.find(block->second.what)->second -= block->second.bytes;
  allocated_ -= block->second.bytes;
  blocks_.erase(block);
  if (cudaFree(memory) != cudaSuccess) cudaGetLastError();
}

size_t CudaDevice::allocated_bytes() const {
  const std::lock_guard lock(mutex_);
  return allocated_;
}

size_t CudaDevice::free_bytes() const {
  Select();
  size_t free = 0, total = 0;
  Check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  if (most_bytes_ == 0) return free;
  const size_t used = allocated_bytes();
  return std::min(free, most_bytes_ - std::min(most_bytes_, used));
}

void CudaDevice::ThrowNoMemory(size_t bytes, std::string_view what) const {
  std::vector<std::string> parts;
  for (const auto& [name, size] : used_) {
    if (size > 0) parts.push_back(fmt::format("{} {}", name, FormatBytes(double(size))));
  }
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) cudaGetLastError();
  const std::string room =
      most_bytes_ > 0
          ? fmt::format("engine.memory_mb allows {}", FormatBytes(double(most_bytes_)))
          : fmt::format("{} of {} are free", FormatBytes(double(free)), FormatBytes(double(total)));
  throw Error(
      "{} ({}) has no memory for {} of {}: this rank uses {}{}, {}; a smaller trainer.batch or a "
      "larger trainer.accumulate needs less",
      name_, properties_.name, FormatBytes(double(bytes)), what, FormatBytes(double(allocated_)),
      parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, ", ")), room);
}

void* CudaDevice::AllocateHost(size_t bytes) {
  Select();
  void* memory = nullptr;
  const cudaError_t status = cudaHostAlloc(&memory, bytes, cudaHostAllocPortable);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    throw Error(
        "{}: the system has no memory for {} that the card can reach (ulimit -l shows the "
        "limit of locked memory)",
        name_, FormatBytes(double(bytes)));
  }
  Check(status, "cudaHostAlloc");
  return std::memset(memory, 0, bytes);
}

void CudaDevice::FreeHost(void* memory, size_t) noexcept {
  if (cudaFreeHost(memory) != cudaSuccess) cudaGetLastError();
}

void CudaDevice::Register(std::span<std::byte> memory) {
  Select();
  PinnedPages::OfProcess().Add(memory);
}

void CudaDevice::Unregister(std::span<std::byte> memory) noexcept {
  PinnedPages::OfProcess().Remove(memory);
}

}  // namespace trireme::cuda
