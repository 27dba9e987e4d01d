#include "graph/text/network_text.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "graph/text/tokens.h"

namespace trireme {
namespace {

constexpr int kDeepest = 32;  // brackets in brackets
constexpr std::string_view kOwnWords[] = {"define", "repeat", "residual", "shortcut", "projection"};

bool IsOwnWord(std::string_view word) {
  return std::ranges::find(kOwnWords, word) != std::end(kOwnWords);
}

// Parts between dots, none of them empty: a parameter of the layer is NAME.weight.
void CheckName(const TextToken& token) {
  const std::vector<std::string> parts = Split(token.text, '.');
  const bool good = std::ranges::all_of(parts, [](const std::string& part) {
    return !part.empty() && part.find('+') == std::string::npos;
  });
  if (!good) RefuseText(token.at, fmt::format("\"{}\" is no name for a layer", token.text));
}

class Parser {
 public:
  explicit Parser(std::string_view text) : tokens_(CutTokens(text)) {}

  NetworkText Network() && {
    NetworkText network;
    while (SkipEmptyLines(), !Is(TextToken::Kind::kEnd)) {
      if (IsSign("}")) RefuseText(Now().at, "this } closes nothing");
      if (IsWord("define")) {
        network.definitions.push_back(Definition());
      } else {
        network.items.push_back(Item());
      }
      EndItem();
    }
    return network;
  }

 private:
  const TextToken& Now() const { return tokens_[at_]; }
  const TextToken& Next() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  bool Is(TextToken::Kind kind) const { return Now().kind == kind; }
  bool IsSign(std::string_view sign) const {
    return Is(TextToken::Kind::kSign) && Now().text == sign;
  }
  bool IsWord(std::string_view word) const {
    return Is(TextToken::Kind::kWord) && Now().text == word && !NamesItem();
  }
  // A word of the grammar may also be a layer's name.
  bool NamesItem() const { return Next().kind == TextToken::Kind::kSign && Next().text == ":"; }
  TextToken Take() { return tokens_[Is(TextToken::Kind::kEnd) ? at_ : at_++]; }

  void SkipEmptyLines() {
    while (Is(TextToken::Kind::kEndOfLine)) Take();
  }

  std::string Shown() const {
    if (Is(TextToken::Kind::kEnd)) return "the end of the text";
    if (Is(TextToken::Kind::kEndOfLine)) return Now().text == ";" ? "\";\"" : "the end of the line";
    return fmt::format("\"{}\"", Now().text);
  }

  TextToken Word(std::string_view what) {
    if (!Is(TextToken::Kind::kWord)) {
      RefuseText(Now().at, fmt::format("expected {}, got {}", what, Shown()));
    }
    return Take();
  }

  void Sign(std::string_view sign, std::string_view after) {
    if (!IsSign(sign)) {
      RefuseText(Now().at, fmt::format("expected {} after {}, got {}", sign, after, Shown()));
    }
    Take();
  }

  void EndItem() {
    if (Is(TextToken::Kind::kEndOfLine) || Is(TextToken::Kind::kEnd) || IsSign("}")) return;
    RefuseText(Now().at, fmt::format("expected the end of the line or ;, got {}", Shown()));
  }

  std::vector<TextItem> Body(std::string_view after) {
    const TextPlace begin = Now().at;
    Sign("{", after);
    if (++depth_ > kDeepest) {
      RefuseText(begin, fmt::format("more than {} brackets in each other", kDeepest));
    }
    std::vector<TextItem> items;
    while (SkipEmptyLines(), !IsSign("}")) {
      if (Is(TextToken::Kind::kEnd)) RefuseText(begin, "this { is never closed");
      if (IsWord("define")) RefuseText(Now().at, "define stands outside of all brackets");
      items.push_back(Item());
      EndItem();
    }
    Take();
    --depth_;
    return items;
  }

  TextValue Value() {
    TextValue value;
    bool divides = false;
    while (true) {
      const TextToken word = Word("a value");
      value.factors.push_back({divides, word.text, word.at});
      if (!IsSign("*") && !IsSign("/")) return value;
      divides = Take().text == "/";
    }
  }

  std::vector<TextArgument> Arguments() {
    std::vector<TextArgument> arguments;
    while (Is(TextToken::Kind::kWord)) {
      TextArgument argument{.key = "", .at = Now().at, .value = {}};
      if (Next().kind == TextToken::Kind::kSign && Next().text == "=") {
        argument.key = Take().text;
        Take();
      } else if (!arguments.empty() && !arguments.back().key.empty()) {
        RefuseText(Now().at,
                   fmt::format("{} needs its name: it follows {}=", Shown(), arguments.back().key));
      }
      argument.value = Value();
      arguments.push_back(std::move(argument));
    }
    return arguments;
  }

  TextItem Item() {
    TextItem item{.at = Now().at};
    if (Is(TextToken::Kind::kWord) && NamesItem()) {
      CheckName(Now());
      item.name = Take().text;
      Take();
    }
    if (IsSign("{")) {
      item.kind = TextItem::Kind::kGroup;
      item.body = Body(item.name);
      return item;
    }
    const TextToken word = Word("a layer");
    if (word.text == "repeat") {
      item.kind = TextItem::Kind::kRepeat;
      item.times.push_back(Value());
      item.body = Body("repeat " + item.times[0].factors.back().word);
    } else if (word.text == "residual") {
      item.kind = TextItem::Kind::kResidual;
      item.body = Body(word.text);
      Shortcut(item);
    } else if (IsOwnWord(word.text)) {
      RefuseText(word.at, fmt::format("{} has no place here", word.text));
    } else {
      item.word = word.text;
      item.at = word.at;
      item.arguments = Arguments();
    }
    return item;
  }

  void Shortcut(TextItem& item) {
    if (IsWord("shortcut")) item.shortcut = TextItem::Shortcut::kAlways;
    if (IsWord("projection")) item.shortcut = TextItem::Shortcut::kWhereShapesDiffer;
    if (item.shortcut == TextItem::Shortcut::kPlain) return;
    const std::string word = Take().text;
    item.shortcut_body = Body(word);
  }

  TextDefinition Definition() {
    Take();
    const TextToken name = Word("the name of the new layer");
    CheckName(name);
    if (IsOwnWord(name.text)) RefuseText(name.at, fmt::format("{} cannot be defined", name.text));
    TextDefinition definition{.name = name.text, .at = name.at, .parameters = {}, .body = {}};
    while (Is(TextToken::Kind::kWord)) {
      const TextToken parameter = Take();
      for (const auto& other : definition.parameters) {
        if (other.name != parameter.text) continue;
        RefuseText(parameter.at, fmt::format("a second {}", parameter.text));
      }
      definition.parameters.push_back({parameter.text, std::nullopt});
      if (!IsSign("=")) continue;
      Take();
      definition.parameters.back().value = Value();
    }
    definition.body = Body(name.text);
    return definition;
  }

  const std::vector<TextToken> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

void RefuseText(TextPlace at, std::string_view what) {
  throw UsageError("model.layers:{}:{}: {}", at.line, at.column, what);
}

NetworkText ParseNetwork(std::string_view text) { return Parser(text).Network(); }

}  // namespace trireme
