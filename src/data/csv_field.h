#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace trireme {

// What the parts of the csv reader have to say of single fields.

std::string_view TrimField(std::string_view text);       // of blanks and tabs
std::optional<float> ParseField(std::string_view text);  // finite numbers only

// For messages: short, and nothing that a terminal would obey or could not show.
std::string QuoteField(std::string_view text);
std::string QuoteFields(std::span<const std::string> texts);  // 'a', 'b', 'c' and 4 more

// What else may be wrong with a field that is no number, as "; this file seems to be ...", or "".
std::string FieldHint(std::string_view text);

}  // namespace trireme
