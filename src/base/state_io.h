#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// What a part of the program must find again after a restart: strategies, optimizers, the model.
// Each saves itself through a StateWriter and loads itself through a StateReader; where the bytes
// go is record/'s business. Names are unique within one checkpoint and kind ("velocity",
// "centre.momentum"); one thread at a time.
class StateWriter {
 public:
  virtual ~StateWriter() = default;

  // The data is written before the call returns: it may be a scratch buffer.
  virtual void Tensor(std::string_view name, std::span<const int64_t> shape,
                      std::span<const float> data) = 0;
  virtual void Int(std::string_view name, int64_t value) = 0;
  virtual void Ints(std::string_view name, std::span<const int64_t> values) = 0;
  virtual void Real(std::string_view name, double value) = 0;  // every bit, also inf and nan
  virtual void Text(std::string_view name, std::string_view value) = 0;
};

// Whatever is missing or of another kind or shape is an Error that names the file and both sides.
class StateReader {
 public:
  virtual ~StateReader() = default;

  virtual bool Has(std::string_view name) const = 0;  // a tensor or a value
  virtual std::vector<std::string> TensorNames() const = 0;
  virtual std::vector<int64_t> Shape(std::string_view name) const = 0;
  virtual void Tensor(std::string_view name, std::span<const int64_t> shape,
                      std::span<float> out) const = 0;
  virtual int64_t Int(std::string_view name) const = 0;
  virtual std::vector<int64_t> Ints(std::string_view name) const = 0;
  virtual double Real(std::string_view name) const = 0;
  virtual std::string Text(std::string_view name) const = 0;
};

}  // namespace trireme
