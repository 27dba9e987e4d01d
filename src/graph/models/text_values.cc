#include "graph/models/text_values.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace trireme {
namespace {

TextSetting Look(const TextValue::Factor& factor, const TextNames& names) {
  if (const auto found = names.find(factor.word); found != names.end()) return found->second;
  return {factor.word, ParseNumber<double>(factor.word)};
}

std::string Nearby(const std::string& word, const TextNames& names) {
  std::vector<std::string> known;
  for (const auto& [name, value] : names) known.push_back(name);
  return DidYouMean(word, known);
}

[[noreturn]] void RefuseValue(const TextValue& value, const TextNames& names, std::string_view key,
                              std::string_view must, const TextSetting& got) {
  RefuseText(value.at(), fmt::format("{} must be {}, got {}{}", key, must, got.word,
                                     got.number ? "" : Nearby(got.word, names)));
}

bool ReadFlag(const TextValue& value, const TextNames& names, std::string_view key) {
  const TextSetting got = Evaluate(value, names);
  if (got.word == "yes" || got.word == "true") return true;
  if (got.word == "no" || got.word == "false") return false;
  RefuseValue(value, names, key, "yes or no", got);
}

void ReadArgument(const LayerArgument& argument, const TextValue& value, const TextNames& names,
                  Attributes& attributes) {
  if (argument.flag) {
    attributes.*argument.flag = ReadFlag(value, names, argument.key);
  } else if (argument.count) {
    attributes.*argument.count =
        WholeNumber(value, names, argument.key, argument.least, argument.most);
  } else {
    const TextSetting got = Evaluate(value, names);
    if (!got.number || !(*got.number >= argument.least && *got.number <= argument.most)) {
      RefuseValue(value, names, argument.key,
                  fmt::format("a number from {:g} to {:g}", argument.least, argument.most), got);
    }
    attributes.*argument.number = float(*got.number);
  }
}

}  // namespace

TextSetting Evaluate(const TextValue& value, const TextNames& names) {
  if (value.factors.size() == 1) return Look(value.factors[0], names);
  double product = 1;
  for (const TextValue::Factor& factor : value.factors) {
    const TextSetting setting = Look(factor, names);
    if (!setting.number) {
      RefuseText(factor.at,
                 fmt::format("\"{}\" is no number{}", setting.word, Nearby(setting.word, names)));
    }
    if (factor.divides && *setting.number == 0) RefuseText(factor.at, "a division by zero");
    product = factor.divides ? product / *setting.number : product * *setting.number;
  }
  return {fmt::format("{:g}", product), product};
}

int WholeNumber(const TextValue& value, const TextNames& names, std::string_view key, double least,
                double most) {
  const TextSetting got = Evaluate(value, names);
  if (!got.number || !(*got.number >= least && *got.number <= most) ||
      *got.number != std::floor(*got.number)) {
    RefuseValue(value, names, key, fmt::format("a whole number from {} to {}", least, most), got);
  }
  return int(*got.number);
}

std::vector<const TextArgument*> AssignArguments(const TextItem& item,
                                                 std::span<const std::string> keys) {
  std::vector<const TextArgument*> assigned(keys.size(), nullptr);
  for (size_t i = 0; i < item.arguments.size(); ++i) {
    const TextArgument& argument = item.arguments[i];
    const auto key = argument.key.empty() ? keys.begin() + std::min(i, keys.size())
                                          : std::find(keys.begin(), keys.end(), argument.key);
    if (key == keys.end()) {
      const std::string takes = keys.empty() ? "nothing" : fmt::format("{}", fmt::join(keys, ", "));
      RefuseText(argument.at,
                 argument.key.empty()
                     ? fmt::format("{} takes {}; this is one too many", item.word, takes)
                     : fmt::format("{} has no {}; it takes {}{}", item.word, argument.key, takes,
                                   DidYouMean(argument.key, keys)));
    }
    const TextArgument*& place = assigned[size_t(key - keys.begin())];
    if (place) RefuseText(argument.at, fmt::format("a second {}", *key));
    place = &argument;
  }
  return assigned;
}

Attributes ReadAttributes(const LayerKind& kind, const TextItem& item, const TextNames& names) {
  std::vector<std::string> keys;
  for (const LayerArgument& argument : kind.arguments) keys.emplace_back(argument.key);
  const auto given = AssignArguments(item, keys);
  Attributes attributes;
  bool strides = false;
  for (size_t i = 0; i < keys.size(); ++i) {
    const LayerArgument& argument = kind.arguments[i];
    if (given[i]) {
      ReadArgument(argument, given[i]->value, names, attributes);
      strides = strides || argument.count == &Attributes::stride;
    } else if (argument.required) {
      RefuseText(item.at, fmt::format("{} needs {}", kind.op, argument.key));
    }
  }
  if (kind.strides_by_kernel && !strides) attributes.stride = attributes.kernel;
  return attributes;
}

}  // namespace trireme
