#include "strategy/portion.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {

Range PortionOf(size_t floats, int index, int servers) {
  const auto border = [&](int i) {
    if (i == servers) return floats;
    const size_t at = floats * size_t(i) / size_t(servers);
    return at - at % Layout::kAlignment;
  };
  return {border(index), border(index + 1) - border(index)};
}

namespace {

// The part of a range that lies in the portion, from the portion's begin on.
Range Inside(Range range, Range portion) {
  const size_t begin = std::max(range.begin, portion.begin);
  const size_t end = std::min(range.end(), portion.end());
  return begin < end ? Range{begin - portion.begin, end - begin} : Range{};
}

}  // namespace

Layout CutLayout(const Layout& layout, Range portion) {
  TRIREME_ASSERT(portion.begin % Layout::kAlignment == 0 && portion.end() <= layout.state);
  Layout cut;
  for (size_t p = 0; p < layout.parameters.size(); ++p) {
    const Range range = Inside(layout.parameters[p], portion);
    if (range.size == 0) continue;
    cut.parameters.push_back(range);
    cut.decays.push_back(layout.decays[p]);
  }
  for (const Range& statistic : layout.statistics) {
    const Range range = Inside(statistic, portion);
    if (range.size > 0) cut.statistics.push_back(range);
  }
  cut.weights = Inside({0, layout.weights}, portion).size;
  cut.state = portion.size;
  cut.summand = cut.state + Layout::kTallies;
  return cut;
}

// ---- RuleImage

namespace {

[[noreturn]] void NoSuchKind(std::string_view name) {
  throw Error("{} is of a kind that no rule of a centre on several servers keeps", name);
}

}  // namespace

void RuleImage::WriteTo(StateWriter& writer) const {
  for (const Tensors& t : tensors) {
    const int64_t size = int64_t(t.values.size());
    writer.Tensor(t.name, {&size, 1}, t.values);
  }
  for (const auto& [name, value] : ints) writer.Int(name, value);
}

void RuleImage::Tensor(std::string_view name, std::span<const int64_t>,
                       std::span<const float> data) {
  tensors.push_back({std::string(name), {data.begin(), data.end()}});
}
void RuleImage::Int(std::string_view name, int64_t value) { ints.emplace_back(name, value); }
void RuleImage::Ints(std::string_view name, std::span<const int64_t>) { NoSuchKind(name); }
void RuleImage::Real(std::string_view name, double) { NoSuchKind(name); }
void RuleImage::Text(std::string_view name, std::string_view) { NoSuchKind(name); }

const RuleImage::Tensors& RuleImage::Find(std::string_view name) const {
  for (const Tensors& t : tensors) {
    if (t.name == name) return t;
  }
  throw Error("the saved centre has no {}", name);
}

bool RuleImage::Has(std::string_view name) const {
  return std::any_of(tensors.begin(), tensors.end(), [&](auto& t) { return t.name == name; }) ||
         std::any_of(ints.begin(), ints.end(), [&](auto& i) { return i.first == name; });
}

std::vector<std::string> RuleImage::TensorNames() const {
  std::vector<std::string> names;
  for (const Tensors& t : tensors) names.push_back(t.name);
  return names;
}

std::vector<int64_t> RuleImage::Shape(std::string_view name) const {
  return {int64_t(Find(name).values.size())};
}

void RuleImage::Tensor(std::string_view name, std::span<const int64_t>,
                       std::span<float> out) const {
  const Tensors& found = Find(name);
  if (found.values.size() != out.size()) {
    throw Error("{} has {} values, not {}", name, found.values.size(), out.size());
  }
  std::copy(found.values.begin(), found.values.end(), out.begin());
}

int64_t RuleImage::Int(std::string_view name) const {
  for (const auto& [known, value] : ints) {
    if (known == name) return value;
  }
  throw Error("the saved centre has no {}", name);
}

std::vector<int64_t> RuleImage::Ints(std::string_view name) const { NoSuchKind(name); }
double RuleImage::Real(std::string_view name) const { NoSuchKind(name); }
std::string RuleImage::Text(std::string_view name) const { NoSuchKind(name); }

// ---- as a message: the number of tensors, the size of each, then the whole numbers

Message PackPortion(int word, std::span<const float> state, const RuleImage* memory) {
  Message message{.kind = word, .body = {state.begin(), state.end()}};
  if (!memory) return message;
  message.ints.push_back(int64_t(memory->tensors.size()));
  for (const auto& t : memory->tensors) {
    message.ints.push_back(int64_t(t.values.size()));
    message.body.insert(message.body.end(), t.values.begin(), t.values.end());
  }
  for (const auto& [name, value] : memory->ints) message.ints.push_back(value);
  return message;
}

bool UnpackPortion(const Message& message, std::span<float> state, RuleImage& memory) {
  const auto require = [&](bool ok) {
    if (!ok) {
      throw Error("a server's portion has {} values and {} numbers, which do not fit {} parameters",
                  message.body.size(), message.ints.size(), state.size());
    }
  };
  require(message.body.size() >= state.size());
  std::copy_n(message.body.begin(), state.size(), state.begin());
  std::span<const float> rest = std::span(message.body).subspan(state.size());
  if (message.ints.empty()) {
    require(rest.empty());
    return false;
  }
  const size_t count = memory.tensors.size();
  require(message.ints[0] == int64_t(count));
  require(message.ints.size() == 1 + count + memory.ints.size());
  for (size_t i = 0; i < count; ++i) {
    const int64_t size = message.ints[1 + i];
    require(size >= 0 && size_t(size) <= rest.size());
    memory.tensors[i].values.assign(rest.begin(), rest.begin() + size);
    rest = rest.subspan(size_t(size));
  }
  require(rest.empty());
  for (size_t i = 0; i < memory.ints.size(); ++i)
    memory.ints[i].second = message.ints[1 + count + i];
  return true;
}

}  // namespace trireme
