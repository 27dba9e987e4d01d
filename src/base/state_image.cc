#include "base/state_image.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace trireme {

template <class T>
void StateImage::Put(std::string_view name, T value) {
  for (Entry& entry : entries_) {
    if (entry.name != name || !std::holds_alternative<T>(entry.value)) continue;
    entry.value = std::move(value);
    return;
  }
  entries_.push_back({std::string(name), std::move(value)});
}

template <class T>
const T& StateImage::Get(std::string_view name) const {
  for (const Entry& entry : entries_) {
    const T* value = std::get_if<T>(&entry.value);
    if (value && entry.name == name) return *value;
  }
  throw Error("the saved state has no {}{}", name, Has(name) ? " of this type" : "");
}

void StateImage::WriteTo(StateWriter& writer) const {
  struct Writing {
    StateWriter& writer;
    const std::string& name;
    void operator()(const Values& v) const { writer.Tensor(name, v.shape, v.data); }
    void operator()(int64_t value) const { writer.Int(name, value); }
    void operator()(const std::vector<int64_t>& values) const { writer.Ints(name, values); }
    void operator()(double value) const { writer.Real(name, value); }
    void operator()(const std::string& value) const { writer.Text(name, value); }
  };
  for (const Entry& entry : entries_) std::visit(Writing{writer, entry.name}, entry.value);
}

void StateImage::Tensor(std::string_view name, std::span<const int64_t> shape,
                        std::span<const float> data) {
  Put(name, Values{{shape.begin(), shape.end()}, {data.begin(), data.end()}});
}
void StateImage::Int(std::string_view name, int64_t value) { Put(name, value); }
void StateImage::Ints(std::string_view name, std::span<const int64_t> values) {
  Put(name, std::vector<int64_t>(values.begin(), values.end()));
}
void StateImage::Real(std::string_view name, double value) { Put(name, value); }
void StateImage::Text(std::string_view name, std::string_view value) {
  Put(name, std::string(value));
}

bool StateImage::Has(std::string_view name) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& entry) { return entry.name == name; });
}

std::vector<std::string> StateImage::TensorNames() const {
  std::vector<std::string> names;
  for (const Entry& entry : entries_) {
    if (std::holds_alternative<Values>(entry.value)) names.push_back(entry.name);
  }
  return names;
}

std::vector<int64_t> StateImage::Shape(std::string_view name) const {
  return Get<Values>(name).shape;
}

void StateImage::Tensor(std::string_view name, std::span<const int64_t> shape,
                        std::span<float> out) const {
  const Values& saved = Get<Values>(name);
  if (!std::equal(shape.begin(), shape.end(), saved.shape.begin(), saved.shape.end()) ||
      saved.data.size() != out.size()) {
    throw Error("{} was saved as {} with {} values, not as {} with {}", name, saved.shape,
                saved.data.size(), shape, out.size());
  }
  std::copy(saved.data.begin(), saved.data.end(), out.begin());
}

int64_t StateImage::Int(std::string_view name) const { return Get<int64_t>(name); }
std::vector<int64_t> StateImage::Ints(std::string_view name) const {
  return Get<std::vector<int64_t>>(name);
}
double StateImage::Real(std::string_view name) const { return Get<double>(name); }
std::string StateImage::Text(std::string_view name) const { return Get<std::string>(name); }

}  // namespace trireme
