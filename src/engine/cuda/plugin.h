#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "flat/arithmetic.h"
#include "flat/device.h"
#include "flat/device_group.h"
#include "graph/engine.h"
#include "graph/engine_options.h"
#include "graph/op.h"

// The border between the program and trireme-cuda.so, which holds everything of CUDA. Plain C++
// crosses it, so both sides must be built from the same headers by the same compiler: the build id
// says so. Errors cross as Error. Nothing but the function at the end is exported.

namespace trireme::cuda {

struct Card {
  std::string name;    // in the maker's words: NVIDIA H200
  std::string target;  // what the bits of results depend on (Engine::target)
  uint64_t memory_bytes = 0;
  std::string problem;  // empty: the plugin can compute with it
};

// What a machine offers.
struct Survey {
  std::string problem;  // in one line, with what to do; empty: there is a card
  bool absent = false;  // nothing is broken: there is no plugin, no driver or no card
  std::vector<Card> cards;
  std::string versions;  // of the driver and of the libraries
};

struct Table {
  static constexpr uint32_t kVersion = 1;  // counts up with every change of the first three

  uint32_t version, bytes;
  const char* build_id;

  // Talks to the driver: processes that were forked from this one later cannot.
  Survey (*survey)();
  std::unique_ptr<Device> (*make_device)(int card, const EngineOptions& options);
  std::unique_ptr<Engine> (*make_engine)(Device& device, Precision precision,
                                         const EngineOptions& options);
  std::unique_ptr<DeviceGroups> (*make_groups)(Device& device);
  // What a device can do at best, for about so many seconds: multiplications and additions per
  // second, bytes copied per second.
  double (*measure_products)(Device& device, Precision precision, double seconds);
  double (*measure_copy)(Device& device, double seconds);
};

// A hash of these headers and of the compiler, made by cmake/cuda_build_id.cmake.
const char* BuildId();

}  // namespace trireme::cuda

// What the program looks for in the plugin.
extern "C" const trireme::cuda::Table* trireme_cuda_table();
