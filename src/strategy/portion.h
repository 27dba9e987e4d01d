#pragma once
#include <string>
#include <utility>
#include <vector>

#include "base/state_io.h"
#include "flat/layout.h"
#include "transport/message.h"

namespace trireme {

// A centre that lies on several servers (strategy.servers; Dean et al. 2012): each holds a portion,
// a stretch of the flat state, and the optimizer's memory for it.

// What server `index` of `servers` holds of a state of so many floats; begins at an aligned place.
Range PortionOf(size_t floats, int index, int servers);

// The layout of a stretch of a state, as if that were all.
Layout CutLayout(const Layout& layout, Range portion);

// What a rule keeps, in memory: tensors and whole numbers, in the order in which it saves them. Any
// other kind of value throws: no rule that works on portions has one.
class RuleImage : public StateWriter, public StateReader {
 public:
  struct Tensors {
    std::string name;
    std::vector<float> values;
  };
  std::vector<Tensors> tensors;
  std::vector<std::pair<std::string, int64_t>> ints;

  void WriteTo(StateWriter& writer) const;

  void Tensor(std::string_view name, std::span<const int64_t> shape,
              std::span<const float> data) override;
  void Int(std::string_view name, int64_t value) override;
  void Ints(std::string_view name, std::span<const int64_t> values) override;
  void Real(std::string_view name, double value) override;
  void Text(std::string_view name, std::string_view value) override;

  bool Has(std::string_view name) const override;
  std::vector<std::string> TensorNames() const override;
  std::vector<int64_t> Shape(std::string_view name) const override;
  void Tensor(std::string_view name, std::span<const int64_t> shape,
              std::span<float> out) const override;
  int64_t Int(std::string_view name) const override;
  std::vector<int64_t> Ints(std::string_view name) const override;
  double Real(std::string_view name) const override;
  std::string Text(std::string_view name) const override;

 private:
  const Tensors& Find(std::string_view name) const;
};

// A portion and what its rule keeps, as one message; without `memory` the rule begins anew.
Message PackPortion(int word, std::span<const float> state, const RuleImage* memory);
// The other way: `memory` has the names, and sizes where they are known; false: there is none.
// Throws Error where sizes do not fit.
bool UnpackPortion(const Message& message, std::span<float> state, RuleImage& memory);

}  // namespace trireme
