#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/state_io.h"
#include "graph/models/models.h"
#include "graph/onnx/onnx_layers.h"

namespace trireme {

// What begins the name of a model, or of weights, that are in an ONNX file.
constexpr std::string_view kOnnxPrefix = "onnx:";

// The network of an ONNX file as text, and its weights under the names that the text gives them.
// UsageError for what is damaged, or has no counterpart here: all of it at once.
class OnnxNetwork final : public StateReader {
 public:
  explicit OnnxNetwork(const std::string& path);
  ~OnnxNetwork() override;

  const std::string& text() const { return text_; }
  const OnnxLayers& layers() const { return layers_; }

  bool Has(std::string_view name) const override;
  std::vector<std::string> TensorNames() const override;
  std::vector<int64_t> Shape(std::string_view name) const override;
  void Tensor(std::string_view name, std::span<const int64_t> shape,
              std::span<float> out) const override;
  // It has tensors alone.
  int64_t Int(std::string_view name) const override;
  std::vector<int64_t> Ints(std::string_view name) const override;
  double Real(std::string_view name) const override;
  std::string Text(std::string_view name) const override;

 private:
  const OnnxWeight& Find(std::string_view name) const;

  const std::string path_;
  std::unique_ptr<const OnnxFile> file_;
  OnnxLayers layers_;
  std::string text_;
  std::map<std::string, const OnnxWeight*, std::less<>> weights_;
};

// What model.name = "onnx:FILE" stands for.
WrittenNetwork ReadOnnxModel(const std::string& file);

}  // namespace trireme
