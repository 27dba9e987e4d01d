#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "graph/text/network_text.h"

namespace trireme {

struct TextToken {
  enum class Kind { kWord, kSign, kEndOfLine, kEnd };
  Kind kind = Kind::kEnd;
  std::string text;  // a word; one of : = * / { }; of an end of line, \n or ;
  TextPlace at;
};

// Without comments. The last token is kEnd.
std::vector<TextToken> CutTokens(std::string_view text);

}  // namespace trireme
