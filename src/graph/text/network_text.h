#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

constexpr size_t kLongestNetwork = size_t{64} << 10;  // bytes

// A network as text (model.layers), parsed and not yet built. docs/networks.md has the grammar.

struct TextPlace {
  int line = 1, column = 1;
};
// UsageError "model.layers:LINE:COLUMN: ...".
[[noreturn]] void RefuseText(TextPlace at, std::string_view what);

// A number or a word, or several of them multiplied and divided: 3, width, 4*width.
struct TextValue {
  struct Factor {
    bool divides = false;
    std::string word;
    TextPlace at;
  };
  std::vector<Factor> factors;  // at least one
  TextPlace at() const { return factors[0].at; }
};

struct TextArgument {
  std::string key;  // empty: by its position
  TextPlace at;
  TextValue value;
};

// A layer, or a bracket around several.
struct TextItem {
  enum class Kind { kLayer, kGroup, kRepeat, kResidual };
  enum class Shortcut { kPlain, kAlways, kWhereShapesDiffer };
  Kind kind = Kind::kLayer;
  TextPlace at;
  std::string name;  // empty: the writer gave none
  std::string word;  // kLayer: which layer
  std::vector<TextArgument> arguments;
  std::vector<TextValue> times;  // kRepeat: one
  std::vector<TextItem> body;    // of a bracket
  Shortcut shortcut = Shortcut::kPlain;
  std::vector<TextItem> shortcut_body;
};

// A layer that the text makes of others.
struct TextDefinition {
  struct Parameter {
    std::string name;
    std::optional<TextValue> value;  // where its user gives none
  };
  std::string name;
  TextPlace at;
  std::vector<Parameter> parameters;
  std::vector<TextItem> body;
};

struct NetworkText {
  std::vector<TextDefinition> definitions;  // each uses only those before it
  std::vector<TextItem> items;
};

NetworkText ParseNetwork(std::string_view text);

}  // namespace trireme
