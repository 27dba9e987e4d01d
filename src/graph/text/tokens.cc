#include "graph/text/tokens.h"

#include <fmt/core.h>

#include <algorithm>

namespace trireme {
namespace {

bool IsWordCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '-' || c == '+';
}

std::string ShownCharacter(char c) {
  if (c > ' ' && c < '\x7F') return fmt::format("'{}'", c);
  return fmt::format("the byte 0x{:02x}", static_cast<unsigned char>(c));
}

}  // namespace

std::vector<TextToken> CutTokens(std::string_view text) {
  using Kind = TextToken::Kind;
  if (text.size() > kLongestNetwork) {
    RefuseText({}, fmt::format("the text has {} bytes; at most {} are allowed", text.size(),
                               kLongestNetwork));
  }
  std::vector<TextToken> tokens;
  TextPlace at;
  size_t i = 0;
  const auto add = [&](Kind kind, size_t length) {
    tokens.push_back({kind, std::string(text.substr(i, length)), at});
    i += length;
    at.column += int(length);
  };
  while (i < text.size()) {
    const char c = text[i];
    if (c == '\n') {
      add(Kind::kEndOfLine, 1);
      at = {at.line + 1, 1};
    } else if (c == ';') {
      add(Kind::kEndOfLine, 1);
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++i, ++at.column;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (std::string_view(":=*/{}").find(c) != std::string_view::npos) {
      add(Kind::kSign, 1);
    } else if (IsWordCharacter(c)) {
      size_t length = 1;
      while (i + length < text.size() && IsWordCharacter(text[i + length])) ++length;
      add(Kind::kWord, length);
    } else {
      RefuseText(at, fmt::format("{} has no meaning here", ShownCharacter(c)));
    }
  }
  tokens.push_back({Kind::kEnd, "", at});
  return tokens;
}

}  // namespace trireme
