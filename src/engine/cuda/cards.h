#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flat/device.h"
#include "flat/device_group.h"
#include "graph/engine.h"
#include "graph/engine_options.h"

// What the row "cuda" of engine/engines.cc says of cards (engine/engines.h explains each).

namespace trireme::cuda {

std::vector<std::string> Targets();
std::string WhyNot(Precision precision);
std::string Missing(std::optional<int> number);
bool Absent();
std::vector<std::string> Details();

struct Made {
  std::unique_ptr<Device> device;
  std::unique_ptr<Engine> engine;
  std::unique_ptr<DeviceGroups> groups;
};
// On card `number`, or without one on that which a rank's place among those of its host chooses.
Made Make(Precision precision, const EngineOptions& options, std::optional<int> number, int place);

// What that card can do at best, measured for about so many seconds.
class Ceilings {
 public:
  explicit Ceilings(std::optional<int> number);
  double Flops(Precision precision, double seconds) const;
  double CopiedBytes(double seconds) const;

 private:
  const std::unique_ptr<Device> device_;
};

}  // namespace trireme::cuda
