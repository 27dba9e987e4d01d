#pragma once
#include <string>

#include "base/state_io.h"
#include "record/json.h"
#include "record/safetensors.h"

namespace trireme {

// State whose tensors go into one safetensors file and whose small values into a JSON object that
// several such files may share.
class StateFileWriter : public StateWriter {
 public:
  StateFileWriter(const std::string& path, const Metadata& metadata, Json& values)
      : tensors_(path, metadata), values_(values) {}

  void Tensor(std::string_view name, std::span<const int64_t> shape,
              std::span<const float> data) override;
  void Int(std::string_view name, int64_t value) override;
  void Ints(std::string_view name, std::span<const int64_t> values) override;
  void Real(std::string_view name, double value) override;
  void Text(std::string_view name, std::string_view value) override;

  void Finish() { tensors_.Finish(); }

 private:
  void Put(std::string_view name, Json value);

  SafetensorsWriter tensors_;
  Json& values_;
};

// The other direction. Without values it reads any safetensors file, PyTorch's, too.
class StateFileReader : public StateReader {
 public:
  explicit StateFileReader(const std::string& path, Json values = Json::Object())
      : tensors_(path), values_(std::move(values)) {}

  bool Has(std::string_view name) const override;
  std::vector<std::string> TensorNames() const override;
  std::vector<int64_t> Shape(std::string_view name) const override;
  void Tensor(std::string_view name, std::span<const int64_t> shape,
              std::span<float> out) const override;
  int64_t Int(std::string_view name) const override;
  std::vector<int64_t> Ints(std::string_view name) const override;
  double Real(std::string_view name) const override;
  std::string Text(std::string_view name) const override;

  const SafetensorsReader& file() const { return tensors_; }

 private:
  const TensorInfo& Info(std::string_view name) const;
  template <class Get>
  auto Value(std::string_view name, Get get) const;

  SafetensorsReader tensors_;
  Json values_;
};

}  // namespace trireme
