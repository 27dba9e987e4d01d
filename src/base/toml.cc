#include "base/toml.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr size_t kLargestRecipe = 1 << 20;
// A dotted key makes nested tables, which toml++ 3.3 frees by recursion without a limit of its own.
constexpr int kMostDotsInALine = 1000;

std::string Place(std::string_view name, const toml::source_position& at) {
  return fmt::format("{}:{}:{}", name, at.line, at.column);
}

[[noreturn]] void Refuse(std::string_view name, const toml::node& node, std::string_view what) {
  throw UsageError("{}: {}", Place(name, node.source().begin), what);
}

void RefuseDeepKeys(std::string_view text, std::string_view name) {
  int line = 1;
  int dots = 0;
  for (const char c : text) {
    if (c == '\n') {
      ++line;
      dots = 0;
    } else if (c == '.' && ++dots > kMostDotsInALine) {
      throw UsageError("{}:{}: more than {} dots in one line", name, line, kMostDotsInALine);
    }
  }
}

// In our words; the library's where they say more.
std::string Explain(std::string_view text, const toml::parse_error& e) {
  const std::string_view said = e.description();
  if (const size_t at = said.find("cannot redefine"); at != said.npos) {
    return std::string(said.substr(at));
  }
  const std::vector<std::string> lines = Split(text, '\n');
  const size_t number = e.source().begin.line;  // from 1
  const std::string line(number <= lines.size() ? Trim(lines[number - 1]) : "");
  if (!IsUtf8(line)) return "must be UTF-8 text";
  constexpr size_t kShown = 80;
  return fmt::format("expected [section] or key = value with strings in quotes{}",
                     line.size() > kShown ? "" : ", got " + QuoteToml(line));
}

TomlValue ToScalar(std::string_view name, const toml::node& node) {
  using Kind = TomlValue::Kind;
  if (const auto* b = node.as_boolean()) return {Kind::kBool, b->get() ? "true" : "false", {}};
  if (const auto* i = node.as_integer()) return {Kind::kInteger, fmt::format("{}", i->get()), {}};
  if (const auto* f = node.as_floating_point()) {
    return {Kind::kFloat, fmt::format("{}", f->get()), {}};
  }
  if (const auto* s = node.as_string()) return {Kind::kString, s->get(), {}};
  if (node.is_table()) Refuse(name, node, "recipes cannot nest sections");
  if (node.is_array()) Refuse(name, node, "recipes cannot nest lists");
  Refuse(name, node, "recipes take no dates or times; put it in quotes if it is a string");
}

bool IsNumber(const TomlValue& value) {
  return value.kind == TomlValue::Kind::kInteger || value.kind == TomlValue::Kind::kFloat;
}

TomlValue ToValue(std::string_view name, const toml::node& node) {
  const toml::array* array = node.as_array();
  if (array == nullptr) return ToScalar(name, node);
  TomlValue list{TomlValue::Kind::kList, "", {}};
  for (const toml::node& element : *array) {
    TomlValue item = ToScalar(name, element);
    if (item.kind == TomlValue::Kind::kBool) {
      Refuse(name, element, "a list holds numbers or strings, not true or false");
    }
    if (!list.items.empty() && IsNumber(item) != IsNumber(list.items.front())) {
      Refuse(name, element, "a list cannot mix numbers and strings");
    }
    list.items.push_back(std::move(item));
  }
  return list;
}

TomlEntry ToEntry(std::string_view name, std::string_view section, const toml::key& key,
                  const toml::node& node) {
  // A value that begins on a later line than its key is still found by its key.
  const int line = static_cast<int>(key.source().begin.line);
  return {std::string(section), std::string(key.str()), ToValue(name, node), line};
}

}  // namespace

std::string TomlValue::Shown() const {
  if (kind == Kind::kString || kind == Kind::kText) return QuoteToml(text);
  if (kind != Kind::kList) return text;
  std::vector<std::string> shown;
  for (const TomlValue& item : items) shown.push_back(item.Shown());
  return fmt::format("[{}]", fmt::join(shown, ", "));
}

namespace {

std::string Escape(std::string_view text, std::string_view kept) {
  std::string escaped;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      escaped += '\\';
      escaped += c;
    } else if ((byte < 0x20 || byte == 0x7F) && kept.find(c) == kept.npos) {
      escaped += fmt::format("\\u{:04X}", byte);
    } else {
      escaped += c;
    }
  }
  return escaped;
}

}  // namespace

std::string QuoteToml(std::string_view text) { return '"' + Escape(text, "") + '"'; }

// The first line break belongs to the quotes.
std::string QuoteTomlLines(std::string_view text) {
  return "\"\"\"\n" + Escape(text, "\n\t") + "\"\"\"";
}

std::vector<TomlEntry> ParseToml(std::string_view text, std::string_view name) try {
  if (text.size() > kLargestRecipe) {
    throw UsageError("{}: larger than {} bytes, too large for a recipe", name, kLargestRecipe);
  }
  RefuseDeepKeys(text, name);
  const toml::table root = toml::parse(text);
  std::vector<TomlEntry> entries;
  for (const auto& [key, node] : root) {
    const toml::table* section = node.as_table();
    if (section == nullptr) {
      entries.push_back(ToEntry(name, "", key, node));
      continue;
    }
    for (const auto& [inner, value] : *section) {
      entries.push_back(ToEntry(name, key.str(), inner, value));
    }
  }
  std::stable_sort(entries.begin(), entries.end(),
                   [](const TomlEntry& a, const TomlEntry& b) { return a.line < b.line; });
  return entries;
} catch (const toml::parse_error& e) {
  throw UsageError("{}: {}", Place(name, e.source().begin), Explain(text, e));
}

std::vector<TomlEntry> ReadTomlFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(kLargestRecipe + 1, '\0');  // one more than allowed: ParseToml then says so
  if (file) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (!file && !file.eof())) {
    throw UsageError("cannot read {}: {}", path, std::strerror(errno));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return ParseToml(text, path);
}

}  // namespace trireme
