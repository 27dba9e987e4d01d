#pragma once
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "graph/graph.h"
#include "graph/models/layer_kinds.h"
#include "graph/text/network_text.h"

namespace trireme {

// What a value of the text comes to: a number, or a word such as no.
struct TextSetting {
  std::string word;  // as it was written
  std::optional<double> number;
};
// What names stand for where a value is read: classes, the parameters of a definition.
using TextNames = std::map<std::string, TextSetting, std::less<>>;

TextSetting Evaluate(const TextValue& value, const TextNames& names);

// A whole number in a range; `key` is for the message.
int WholeNumber(const TextValue& value, const TextNames& names, std::string_view key, double least,
                double most);

// The argument for each of `keys`, null where there is none: first those without a key, in order.
// Refuses a key that is not among them or comes twice, and more arguments than keys.
std::vector<const TextArgument*> AssignArguments(const TextItem& item,
                                                 std::span<const std::string> keys);

Attributes ReadAttributes(const LayerKind& kind, const TextItem& item, const TextNames& names);

}  // namespace trireme
