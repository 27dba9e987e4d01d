#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace trireme {

// Single fields of csv files.

std::string CsvField(std::string_view text);  // as a file holds it: quoted where needed

std::string_view TrimField(std::string_view text);  // of blanks and tabs
// Finite numbers only; `decimal_comma`: 1,5 is one, too.
std::optional<float> ParseField(std::string_view text, bool decimal_comma = false);
bool IsMissing(std::string_view text);      // nothing, or a word for it: NA, null, ?, ...
bool LooksLikeDate(std::string_view text);  // 2024-01-31, 31.1.2024, 1/31/24, with or without time

// For messages: short, and nothing that a terminal would obey or could not show.
std::string QuoteField(std::string_view text);
std::string QuoteFields(std::span<const std::string> texts);  // 'a', 'b', 'c' and 4 more

// What else may be wrong with a field that is no number, as "; this file seems to be ...", or "".
std::string FieldHint(std::string_view text);

}  // namespace trireme
