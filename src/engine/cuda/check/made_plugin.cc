// A plugin without CUDA, for the tests of the border: TRIREME_MADE_PLUGIN says what is wrong with
// it.
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>

#include "engine/cuda/plugin.h"

namespace trireme::cuda {
namespace {

std::string Wanted() {
  const char* text = std::getenv("TRIREME_MADE_PLUGIN");
  return text ? text : "";
}

Survey LookAround() {
  const std::string wanted = Wanted();
  if (wanted == "crash") std::abort();
  if (wanted == "quit") _exit(0);
  if (wanted == "throw") throw Error("there is no library of this kind; install {}", "it");
  while (wanted == "hang") pause();
  if (wanted == "empty") return {.problem = "there is no card; plug one in", .absent = true};
  return {.cards = {{"Made 1", "made one", uint64_t{3} << 30, ""},
                    {"Made 2", "made two", uint64_t{5} << 30, "Made 2 is too old; buy another"}},
          .versions = "driver 7, library 8"};
}

std::unique_ptr<Device> MakeDevice(int card, const EngineOptions& options) {
  throw Error("card {} with {} MB exists on paper only", card, options.memory_mb);
}

std::unique_ptr<Engine> MakeEngine(Device&, Precision, const EngineOptions&) { return nullptr; }

std::unique_ptr<DeviceGroups> MakeGroups(Device&) { return nullptr; }

double MeasureProducts(Device&, Precision, double) { return 0; }
double MeasureCopy(Device&, double) { return 0; }

}  // namespace
}  // namespace trireme::cuda

extern "C" const trireme::cuda::Table* trireme_cuda_table() {
  using namespace trireme::cuda;
  static Table table;
  const std::string wanted = Wanted();
  table = {.version = Table::kVersion + (wanted == "version"),
           .bytes = uint32_t(sizeof(Table)) + (wanted == "size"),
           .build_id = wanted == "id" ? "of another build" : BuildId(),
           .survey = LookAround,
           .make_device = MakeDevice,
           .make_engine = MakeEngine,
           .make_groups = MakeGroups,
           .measure_products = MeasureProducts,
           .measure_copy = MeasureCopy};
  return &table;
}
