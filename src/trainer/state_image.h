#pragma once
#include <functional>
#include <string>
#include <vector>

#include "base/state_io.h"

namespace trireme {

// What was saved at one moment, to be written later, on another thread.
class StateImage : public StateWriter {
 public:
  void Tensor(std::string_view name, std::span<const int64_t> shape,
              std::span<const float> data) override;
  void Int(std::string_view name, int64_t value) override;
  void Ints(std::string_view name, std::span<const int64_t> values) override;
  void Real(std::string_view name, double value) override;
  void Text(std::string_view name, std::string_view value) override;

  void WriteTo(StateWriter& writer) const;  // all of it, in order

 private:
  std::vector<std::function<void(StateWriter&)>> entries_;
};

}  // namespace trireme
