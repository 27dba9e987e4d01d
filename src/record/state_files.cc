#include "record/state_files.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// JSON has no infinities, but "the best loss so far" begins with one.
Json FromReal(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

double ToReal(const Json& value) {
  if (!value.IsString()) return value.AsDouble();
  const std::string& text = value.AsString();
  if (text == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (text == "inf") return kInfinity;
  if (text == "-inf") return -kInfinity;
  throw Error("expected a number, found \"{}\"", text);
}

}  // namespace

void StateFileWriter::Tensor(std::string_view name, std::span<const int64_t> shape,
                             std::span<const float> data) {
  tensors_.Add(name, shape, data);
}

void StateFileWriter::Put(std::string_view name, Json value) {
  if (values_.Find(name) != nullptr) throw Error("checkpoint: \"{}\" is saved twice", name);
  values_.AddNew(std::string(name), std::move(value));
}

void StateFileWriter::Int(std::string_view name, int64_t value) { Put(name, value); }

void StateFileWriter::Ints(std::string_view name, std::span<const int64_t> values) {
  Put(name, std::vector<int64_t>(values.begin(), values.end()));
}

void StateFileWriter::Real(std::string_view name, double value) { Put(name, FromReal(value)); }

void StateFileWriter::Text(std::string_view name, std::string_view value) { Put(name, value); }

bool StateFileReader::Has(std::string_view name) const {
  return tensors_.Find(name) != nullptr || values_.Find(name) != nullptr;
}

std::vector<std::string> StateFileReader::TensorNames() const {
  std::vector<std::string> names;
  for (const TensorInfo& tensor : tensors_.tensors()) names.push_back(tensor.name);
  return names;
}

const TensorInfo& StateFileReader::Info(std::string_view name) const {
  const TensorInfo* tensor = tensors_.Find(name);
  if (tensor == nullptr) throw Error("{}: has no tensor \"{}\"", tensors_.path(), name);
  return *tensor;
}

std::vector<int64_t> StateFileReader::Shape(std::string_view name) const {
  return Info(name).shape;
}

void StateFileReader::Tensor(std::string_view name, std::span<const int64_t> shape,
                             std::span<float> out) const {
  const TensorInfo& tensor = Info(name);
  if (!std::ranges::equal(tensor.shape, shape)) {
    throw Error("{}: tensor \"{}\" has shape {}; expected {}", tensors_.path(), name,
                ShapeText(tensor.shape), ShapeText(shape));
  }
  TRIREME_ASSERT(out.size() == tensor.count);
  tensors_.Read(tensor, out);
}

template <class Get>
auto StateFileReader::Value(std::string_view name, Get get) const {
  const Json* value = values_.Find(name);
  if (value == nullptr) throw Error("{}: its state has no \"{}\"", tensors_.path(), name);
  try {
    return get(*value);
  } catch (Error& error) {
    error.Add("\"{}\" in the state of {}", name, tensors_.path());
    throw;
  }
}

int64_t StateFileReader::Int(std::string_view name) const {
  return Value(name, [](const Json& value) { return value.AsInt(); });
}

std::vector<int64_t> StateFileReader::Ints(std::string_view name) const {
  return Value(name, [](const Json& value) {
    std::vector<int64_t> all;
    for (const Json& item : value.Items()) all.push_back(item.AsInt());
    return all;
  });
}

double StateFileReader::Real(std::string_view name) const { return Value(name, ToReal); }

std::string StateFileReader::Text(std::string_view name) const {
  return Value(name, [](const Json& value) { return value.AsString(); });
}

}  // namespace trireme
