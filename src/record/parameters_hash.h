#pragma once
#include <string>

#include "base/sha256.h"
#include "base/state_io.h"

namespace trireme {

// `parameters_sha256`: of the tensors' floats in the order in which a model saves them, so it is
// the SHA-256 of the data section of model.safetensors, whatever engine or layout made it.
class ParametersHash : public StateWriter {
 public:
  void Tensor(std::string_view, std::span<const int64_t>, std::span<const float> data) override {
    hash_.Add(data);
  }
  void Int(std::string_view, int64_t) override {}
  void Ints(std::string_view, std::span<const int64_t>) override {}
  void Real(std::string_view, double) override {}
  void Text(std::string_view, std::string_view) override {}

  std::string Hex() const { return hash_.Hex(); }

 private:
  Sha256 hash_;
};

}  // namespace trireme
