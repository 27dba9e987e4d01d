#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// A value as it was given: in a recipe, where it has a kind, or on the command line, where it is
// text that may become anything. Numbers are kept as text, so each type reads its own digits.
struct TomlValue {
  enum class Kind { kText, kBool, kInteger, kFloat, kString, kList };
  Kind kind = Kind::kText;
  std::string text;              // unquoted; empty for a list
  std::vector<TomlValue> items;  // of a list: strings, or numbers

  std::string Shown() const;  // for messages: 12, "word", [1, 2]
};

struct TomlEntry {
  std::string section;  // empty above the first [section]
  std::string key;
  TomlValue value;
  int line = 0;
};

// The entries of a recipe in the order of its lines. What is no TOML, or TOML that no recipe
// needs (dates, tables in tables, mixed lists), is a UsageError with name:line:column.
std::vector<TomlEntry> ParseToml(std::string_view text, std::string_view name);
std::vector<TomlEntry> ReadTomlFile(const std::string& path);

std::string QuoteToml(std::string_view text);       // as a basic string, with quotes and escapes
std::string QuoteTomlLines(std::string_view text);  // the same over several lines: """..."""

}  // namespace trireme
