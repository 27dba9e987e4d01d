#pragma once
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/state_io.h"

namespace trireme {

// What was saved at one moment, in memory and in the order of saving: to be written later, on
// another thread, or to be read by another part. What is saved again under its name replaces.
class StateImage : public StateWriter, public StateReader {
 public:
  struct Values {
    std::vector<int64_t> shape;
    std::vector<float> data;
  };
  struct Entry {
    std::string name;
    std::variant<Values, int64_t, std::vector<int64_t>, double, std::string> value;
  };
  std::vector<Entry>& entries() { return entries_; }
  const std::vector<Entry>& entries() const { return entries_; }
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
  template <class T>
  void Put(std::string_view name, T value);
  template <class T>
  const T& Get(std::string_view name) const;

  std::vector<Entry> entries_;
};

}  // namespace trireme
