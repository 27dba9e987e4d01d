#include "graph/models/text_model.h"

#include <fmt/ranges.h>

#include <map>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "graph/models/layer_kinds.h"
#include "graph/models/layers.h"
#include "graph/models/text_values.h"
#include "graph/op.h"
#include "graph/text/network_text.h"

namespace trireme {
namespace {

// Against sizes that nobody means: 10^9 repetitions, definitions that double each other.
constexpr int kMostLayers = 10'000;
constexpr int kMostItems = 100'000;  // with those that make no layer
constexpr int kDeepestUse = 100;     // brackets and definitions in each other
constexpr int64_t kMostValues = int64_t{1} << 28;
constexpr int64_t kMostParameters = int64_t{1} << 32;

// Where names are unique: the layers of one bracket that has a name.
struct Scope {
  std::string path;
  int count = 0;  // of layers so far: the next one's name where it is given none

  std::string Full(const std::string& name) const {
    return path.empty() ? name : path + "." + name;
  }
  std::string Next(const std::string& name) {
    const int number = count++;
    return Full(name.empty() ? fmt::format("{}", number) : name);
  }
};

class TextBuilder {
 public:
  TextBuilder(const NetworkText& text, Shape input, int classes)
      : text_(text), build_(input), classes_(classes) {
    makers_[build_.input()] = "the input";
    for (const TextDefinition& definition : text.definitions) CheckDefinition(definition);
  }

  Graph Build(const ModelOptions& options) && {
    Scope scope;
    const TextNames names = OwnNames();
    const ValueId end = Place(text_.items, build_.input(), scope, names, text_.definitions.size());
    if (layers_ == 0) RefuseText({}, "the text has no layer");
    const Shape wanted{.channels = classes_};
    if (build_.shape(end) != wanted) {
      RefuseText(last_, fmt::format("the last layer, {}, makes {}; the data want {}, so "
                                    "end with: dense classes",
                                    makers_.at(end), ToText(build_.shape(end)), classes_));
    }
    if (parameters_ == 0) RefuseText(last_, "no layer has parameters: there is nothing to train");
    return FinishWithLoss(std::move(build_), options, end);
  }

 private:
  TextNames OwnNames() const {
    return {{"classes", {fmt::format("{}", classes_), double(classes_)}}};
  }

  void CheckDefinition(const TextDefinition& definition) const {
    if (FindLayerKind(definition.name)) {
      RefuseText(definition.at, fmt::format("there is a layer {} already", definition.name));
    }
    for (const TextDefinition& other : text_.definitions) {
      if (&other == &definition) return;
      if (other.name != definition.name) continue;
      RefuseText(definition.at,
                 fmt::format("{} is defined in line {} already", definition.name, other.at.line));
    }
  }

  void Count(TextPlace at) {
    last_ = at;
    if (++items_ <= kMostItems && depth_ <= kDeepestUse) return;
    RefuseText(at, fmt::format("the text makes too much of too little: at most {} layers, {} in "
                               "each other",
                               kMostLayers, kDeepestUse));
  }

  // Adds the items behind `x` and returns the end. Of the definitions the first `known` may be
  // used: those before the one that this is the body of.
  ValueId Place(const std::vector<TextItem>& items, ValueId x, Scope& scope, const TextNames& names,
                size_t known) {
    ++depth_;
    for (const TextItem& item : items) {
      Count(item.at);
      if (item.kind == TextItem::Kind::kLayer) {
        x = Layer(item, x, scope, names, known);
      } else if (item.name.empty()) {
        x = Bracket(item, x, scope, names, known);
      } else {
        Scope own{scope.Next(item.name)};
        x = Bracket(item, x, own, names, known);
      }
    }
    --depth_;
    return x;
  }

  ValueId Bracket(const TextItem& item, ValueId x, Scope& scope, const TextNames& names,
                  size_t known) {
    if (item.kind == TextItem::Kind::kResidual) return Residual(item, x, scope, names, known);
    const int times = item.kind == TextItem::Kind::kRepeat
                          ? WholeNumber(item.times[0], names, "repeat", 0, kMostLayers)
                          : 1;
    for (int i = 0; i < times; ++i) {
      Count(item.at);
      x = Place(item.body, x, scope, names, known);
    }
    return x;
  }

  ValueId Residual(const TextItem& item, ValueId x, Scope& scope, const TextNames& names,
                   size_t known) {
    const ValueId branch = Place(item.body, x, scope, names, known);
    const bool differ = build_.shape(branch) != build_.shape(x);
    ValueId shortcut = x;
    if (item.shortcut == TextItem::Shortcut::kAlways ||
        (item.shortcut == TextItem::Shortcut::kWhereShapesDiffer && differ)) {
      shortcut = Place(item.shortcut_body, x, scope, names, known);
    }
    if (branch == shortcut) RefuseText(item.at, "the residual branch has no layer");
    if (build_.shape(branch) != build_.shape(shortcut)) {
      RefuseText(
          item.at,
          fmt::format("the branch ends with {}, which makes {}, its shortcut with {}, which "
                      "makes {}; they are added, so their shapes must be the same{}",
                      makers_.at(branch), ToText(build_.shape(branch)), makers_.at(shortcut),
                      ToText(build_.shape(shortcut)),
                      shortcut == x ? " (`} projection { ... }` changes the shortcut's)" : ""));
    }
    return Add("add", {}, {branch, shortcut}, scope.Full("add"), item.at);
  }

  ValueId Layer(const TextItem& item, ValueId x, Scope& scope, const TextNames& names,
                size_t known) {
    const std::string name = scope.Next(item.name);
    if (const LayerKind* kind = FindLayerKind(item.word)) {
      return Add(kind->op, ReadAttributes(*kind, item, names), {x}, name, item.at);
    }
    for (size_t i = 0; i < known; ++i) {
      if (text_.definitions[i].name == item.word) return Use(item, i, x, name, names);
    }
    RefuseUnknown(item, known);
  }

  [[noreturn]] void RefuseUnknown(const TextItem& item, size_t known) const {
    std::vector<std::string> words;
    for (const LayerKind& kind : LayerKinds()) words.push_back(kind.op);
    for (size_t i = 0; i < text_.definitions.size(); ++i) {
      if (i < known) words.push_back(text_.definitions[i].name);
      if (text_.definitions[i].name != item.word) continue;
      RefuseText(item.at,
                 fmt::format("a definition uses only those before it; {} comes later", item.word));
    }
    const std::string nearest = DidYouMean(item.word, words);
    RefuseText(item.at,
               fmt::format("there is no layer \"{}\"{}", item.word,
                           nearest.empty() ? fmt::format("; choose from {}", fmt::join(words, ", "))
                                           : nearest));
  }

  ValueId Use(const TextItem& item, size_t index, ValueId x, const std::string& name,
              const TextNames& names) {
    const TextDefinition& definition = text_.definitions[index];
    std::vector<std::string> keys;
    for (const auto& parameter : definition.parameters) keys.push_back(parameter.name);
    const auto given = AssignArguments(item, keys);
    TextNames inner = OwnNames();
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto& standard = definition.parameters[i].value;
      if (!given[i] && !standard) {
        RefuseText(item.at, fmt::format("{} needs {}", item.word, keys[i]));
      }
      inner[keys[i]] = given[i] ? Evaluate(given[i]->value, names) : Evaluate(*standard, inner);
    }
    Scope own{name};
    return Place(definition.body, x, own, inner, index);
  }

  ValueId Add(const std::string& op, const Attributes& attributes, std::vector<ValueId> inputs,
              const std::string& name, TextPlace at) {
    std::vector<ValueSpec> specs;
    for (const ValueId input : inputs) specs.push_back({.shape = build_.shape(input)});
    const std::string maker = fmt::format("\"{}\" ({})", name, op);
    Signature signature;
    try {
      signature = FindOp(op).infer(specs, attributes);
    } catch (const Error& error) {
      RefuseText(at, fmt::format("{} does not fit behind {}, which makes {}: {}", maker,
                                 makers_.at(inputs[0]), ToText(specs[0].shape), error.what()));
    }
    CheckSize(signature, maker, at);
    if (!signature.parameters.empty() && !named_.emplace(name, at).second) {
      RefuseText(at, fmt::format("a second layer is called \"{}\" (the first is in line {}); "
                                 "parameters need names of their own",
                                 name, named_.at(name).line));
    }
    const ValueId made = build_.Add(op, std::move(inputs), attributes, name);
    makers_[made] = maker;
    return made;
  }

  void CheckSize(const Signature& signature, const std::string& maker, TextPlace at) {
    if (++layers_ > kMostLayers) {
      RefuseText(at, fmt::format("the network has more than {} layers", kMostLayers));
    }
    for (const ParameterSpec& spec : signature.parameters) parameters_ += spec.size();
    if (parameters_ > kMostParameters) {
      RefuseText(at, fmt::format("with {} the network has more than {} parameters", maker,
                                 FormatCount(kMostParameters)));
    }
    if (signature.outputs[0].shape.size() > kMostValues) {
      RefuseText(at, fmt::format("{} makes {}: more than {} values for each sample", maker,
                                 ToText(signature.outputs[0].shape), FormatCount(kMostValues)));
    }
  }

  const NetworkText& text_;
  Builder build_;
  const int classes_;
  std::map<ValueId, std::string> makers_;   // for messages
  std::map<std::string, TextPlace> named_;  // layers with parameters
  int layers_ = 0, items_ = 0, depth_ = 0;
  int64_t parameters_ = 0;
  TextPlace last_;
};

void RefuseOptions(const ModelOptions& options) {
  const ModelOptions standard;
  RefuseStem(options);
  RefuseStochasticDepth(options);
  if (options.activation == standard.activation && options.norm == standard.norm &&
      options.dropout == standard.dropout) {
    return;
  }
  throw UsageError(
      "model.layers names its own activations, norms and dropout; got model.activation = \"{}\", "
      "model.norm = \"{}\", model.dropout = {}",
      options.activation, options.norm, options.dropout);
}

}  // namespace

Graph BuildText(const ModelOptions& options, const std::string&, Shape input, int classes) {
  RefuseOptions(options);
  if (options.layers.empty()) {
    throw UsageError("model.name \"{0}\" needs model.layers, or a file: {0}:FILE", options.name);
  }
  const NetworkText text = ParseNetwork(options.layers);
  return TextBuilder(text, input, classes).Build(options);
}

std::string ReadLayers(const std::string& file) {
  std::string text;
  try {
    text = ReadFile(file, kLongestNetwork);
  } catch (const Error& error) {
    throw UsageError("model.name: {}", error.what());
  }
  if (!IsUtf8(text) || text.find('\0') != text.npos) {
    throw UsageError("model.name: {} is no text in UTF-8", file);
  }
  if (Trim(text).empty()) throw UsageError("model.name: {} is empty", file);
  return text;
}

}  // namespace trireme
