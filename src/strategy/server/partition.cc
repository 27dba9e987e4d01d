#include "strategy/server/partition.h"

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {

Range PartitionOf(size_t floats, int index, int servers) {
  const auto border = [&](int i) {
    if (i == servers) return floats;
    const size_t at = floats * size_t(i) / size_t(servers);
    return at - at % Layout::kAlignment;
  };
  return {border(index), border(index + 1) - border(index)};
}

namespace {

// The part of a range that lies in the partition, from the partition's begin on.
Range Inside(Range range, Range partition) {
  const size_t begin = std::max(range.begin, partition.begin);
  const size_t end = std::min(range.end(), partition.end());
  return begin < end ? Range{begin - partition.begin, end - begin} : Range{};
}

}  // namespace

Layout CutLayout(const Layout& layout, Range partition) {
  TRIREME_ASSERT(partition.begin % Layout::kAlignment == 0 && partition.end() <= layout.state);
  Layout cut;
  for (size_t p = 0; p < layout.parameters.size(); ++p) {
    const Range range = Inside(layout.parameters[p], partition);
    if (range.size == 0) continue;
    cut.parameters.push_back(range);
    cut.decays.push_back(layout.decays[p]);
    if (!layout.rates.empty()) cut.rates.push_back(layout.rates[p]);
  }
  for (const Range& statistic : layout.statistics) {
    const Range range = Inside(statistic, partition);
    if (range.size > 0) cut.statistics.push_back(range);
  }
  cut.weights = Inside({0, layout.weights}, partition).size;
  cut.state = partition.size;
  cut.summand = cut.state + Layout::kStepMetrics;
  return cut;
}

RuleMemory MemoryIn(StateImage& image) {
  RuleMemory memory;
  for (auto& [name, value] : image.entries()) {
    if (auto* tensor = std::get_if<StateImage::Values>(&value)) {
      memory.tensors.push_back(tensor);
    } else if (auto* number = std::get_if<int64_t>(&value)) {
      memory.numbers.push_back(number);
    } else {
      throw Error("{} cannot be kept by a centre on several servers; use strategy.servers = 1",
                  name);
    }
  }
  return memory;
}

void Assign(StateImage::Values& tensor, std::span<const float> values) {
  tensor.shape = {int64_t(values.size())};
  tensor.data.assign(values.begin(), values.end());
}

// ---- as a message: the number of tensors, the size of each, then the whole numbers

Message PackPartition(int word, std::span<const float> state, StateImage* memory) {
  Message message{.kind = word, .body = {state.begin(), state.end()}};
  if (!memory) return message;
  const auto [tensors, numbers] = MemoryIn(*memory);
  message.ints.push_back(int64_t(tensors.size()));
  for (const StateImage::Values* tensor : tensors) {
    message.ints.push_back(int64_t(tensor->data.size()));
    message.body.insert(message.body.end(), tensor->data.begin(), tensor->data.end());
  }
  for (const int64_t* number : numbers) message.ints.push_back(*number);
  return message;
}

bool UnpackPartition(const Message& message, std::span<float> state, StateImage& memory) {
  const auto require = [&](bool ok) {
    if (!ok) {
      throw Error(
          "a server's partition has {} values and {} integers, which do not fit {} parameters",
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
  const auto [tensors, numbers] = MemoryIn(memory);
  const size_t count = tensors.size();
  require(message.ints[0] == int64_t(count));
  require(message.ints.size() == 1 + count + numbers.size());
  for (size_t i = 0; i < count; ++i) {
    const int64_t size = message.ints[1 + i];
    require(size >= 0 && size_t(size) <= rest.size());
    Assign(*tensors[i], rest.first(size_t(size)));
    rest = rest.subspan(size_t(size));
  }
  require(rest.empty());
  for (size_t i = 0; i < numbers.size(); ++i) *numbers[i] = message.ints[1 + count + i];
  return true;
}

}  // namespace trireme
