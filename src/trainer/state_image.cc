#include "trainer/state_image.h"

namespace trireme {

void StateImage::Tensor(std::string_view name, std::span<const int64_t> shape,
                        std::span<const float> data) {
  entries_.push_back([name = std::string(name), shape = std::vector(shape.begin(), shape.end()),
                      data = std::vector(data.begin(), data.end())](StateWriter& writer) {
    writer.Tensor(name, shape, data);
  });
}

void StateImage::Int(std::string_view name, int64_t value) {
  entries_.push_back(
      [name = std::string(name), value](StateWriter& writer) { writer.Int(name, value); });
}

void StateImage::Ints(std::string_view name, std::span<const int64_t> values) {
  entries_.push_back([name = std::string(name), values = std::vector(values.begin(), values.end())](
                         StateWriter& writer) { writer.Ints(name, values); });
}

void StateImage::Real(std::string_view name, double value) {
  entries_.push_back(
      [name = std::string(name), value](StateWriter& writer) { writer.Real(name, value); });
}

void StateImage::Text(std::string_view name, std::string_view value) {
  entries_.push_back([name = std::string(name), value = std::string(value)](StateWriter& writer) {
    writer.Text(name, value);
  });
}

void StateImage::WriteTo(StateWriter& writer) const {
  for (const auto& entry : entries_) entry(writer);
}

}  // namespace trireme
