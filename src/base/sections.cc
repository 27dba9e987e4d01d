#include "base/sections.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.h"
#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

// --set 'model.name="mlp"' means what it means in a recipe.
std::string_view Unquoted(std::string_view text) {
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

std::string Meaning(const Option& option) {
  const std::string allowed = option.check().Words();
  return allowed.empty() ? option.help() : fmt::format("{} ({})", option.help(), allowed);
}

std::string EscapePipes(const std::string& text) {
  return fmt::format("{}", fmt::join(Split(text, '|'), "\\|"));
}

}  // namespace

std::string_view KeyOf(std::string_view assignment) {
  return Trim(assignment.substr(0, assignment.find('=')));
}

void Sections::Append(const std::string& section, std::vector<Option> rows) {
  auto at = std::find_if(sections_.begin(), sections_.end(),
                         [&](const Section& s) { return s.name == section; });
  if (at == sections_.end()) at = sections_.insert(at, Section{section, {}});
  for (Option& row : rows) {
    const std::string path = section + "." + row.key();
    for (const Key& key : at->keys) TRIREME_ASSERT(key.path != path);
    at->keys.push_back({path, std::move(row), Origin::kDefault, ""});
  }
}

void Sections::LoadFile(const std::string& path) { Load(ReadTomlFile(path), path); }

void Sections::Load(const std::vector<TomlEntry>& entries, std::string_view file) {
  for (const TomlEntry& entry : entries) {
    const std::string where = fmt::format("{}:{}", file, entry.line);
    SetValue(Find(entry.section, entry.key, where), entry.value, Origin::kRecipe, where);
  }
}

void Sections::SetAssignment(std::string_view assignment) {
  const size_t equals = assignment.find('=');
  if (equals == assignment.npos) {
    throw UsageError("--set {}: expected section.key=value", assignment);
  }
  Set(KeyOf(assignment), Unquoted(Trim(assignment.substr(equals + 1))), Origin::kCommandLine,
      fmt::format("--set {}", assignment));
}

void Sections::Set(std::string_view path, std::string_view text, Origin origin, std::string where) {
  const size_t dot = path.find('.');
  Key& key = dot == path.npos ? Find("", path, where)
                              : Find(path.substr(0, dot), path.substr(dot + 1), where);
  SetValue(key, {TomlValue::Kind::kText, std::string(text), {}}, origin, std::move(where));
}

void Sections::SetValue(Key& key, const TomlValue& value, Origin origin, std::string where) {
  const bool wins = origin >= key.origin;
  const bool twice = std::min(origin, key.origin) == Origin::kCommandLine;
  bool differs = false;
  try {
    // What loses must be right all the same.
    differs = key.option.Set(value, key.path, wins && !twice);
  } catch (const UsageError& e) {
    throw UsageError("{}: {}", where, e.what());
  }
  if (twice && differs) {
    throw UsageError("{} is given twice: {} and {}", key.path, key.where, where);
  }
  if (!wins || twice) return;
  key.origin = origin;
  key.where = std::move(where);
}

Sections::Key& Sections::Find(std::string_view section, std::string_view key,
                              const std::string& where) {
  for (Section& s : sections_) {
    if (s.name != section) continue;
    for (Key& k : s.keys) {
      if (k.option.key() == key) return k;
    }
  }
  if (section.empty()) {
    throw UsageError("{}: {} is outside any section{}", where, key, Suggest(section, key));
  }
  throw UsageError("{}: unknown key {}.{}{}", where, section, key, Suggest(section, key));
}

// In this order: the same key of other sections, a like key of this section, any like path.
std::string Sections::Suggest(std::string_view section, std::string_view key) const {
  std::vector<std::string> same, all;
  std::vector<std::string> keys, paths;  // in this section, or in all of them when none was named
  for (const Section& s : sections_) {
    for (const Key& k : s.keys) {
      all.push_back(k.path);
      if (k.option.key() == key) same.push_back(k.path);
      if (!section.empty() && s.name != section) continue;
      keys.push_back(k.option.key());
      paths.push_back(k.path);
    }
  }
  if (!same.empty()) return fmt::format("; did you mean {}?", fmt::join(same, " or "));
  if (const auto nearest = Nearest(key, keys)) {
    const auto at = std::find(keys.begin(), keys.end(), *nearest) - keys.begin();
    return fmt::format("; did you mean {}?", paths[static_cast<size_t>(at)]);
  }
  return DidYouMean(fmt::format("{}.{}", section, key), all);
}

const Sections::Key& Sections::Known(std::string_view path) const {
  for (const Section& section : sections_) {
    for (const Key& key : section.keys) {
      if (key.path == path) return key;
    }
  }
  AssertFailed("the program asked for a key that no section has", __FILE__, __LINE__);
}

Origin Sections::GivenBy(std::string_view path) const { return Known(path).origin; }
bool Sections::IsGiven(std::string_view path) const { return GivenBy(path) != Origin::kDefault; }
bool Sections::ByHand(std::string_view path) const { return GivenBy(path) == Origin::kCommandLine; }
const std::string& Sections::Where(std::string_view path) const { return Known(path).where; }

bool Sections::IsChanged(std::string_view path) const {
  const Option& option = Known(path).option;
  return option.Toml() != option.default_toml();
}

void Sections::RefuseBoth(std::string_view path, std::string_view other) const {
  if (!IsGiven(path) || !IsGiven(other)) return;
  const bool both_by_hand = ByHand(path) && ByHand(other);
  if (!both_by_hand && !(IsChanged(path) && IsChanged(other))) return;
  throw UsageError("{} ({}) and {} ({}) exclude each other; give one of them", path, Where(path),
                   other, Where(other));
}

std::vector<std::string> Sections::Paths() const {
  std::vector<std::string> paths;
  for (const Section& section : sections_) {
    for (const Key& key : section.keys) paths.push_back(key.path);
  }
  return paths;
}

std::string Sections::ToToml() const {
  return ToToml([](Binds) { return true; });
}

std::string Sections::ToToml(FunctionRef<bool(Binds)> which) const {
  std::string text;
  for (const Section& section : sections_) {
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section.name);
    for (const Key& key : section.keys) {
      if (!which(key.option.binds())) continue;
      text += fmt::format("{} = {}\n", key.option.key(), key.option.Toml());
    }
  }
  return text;
}

std::string Sections::HelpText() const {
  std::string text;
  for (const Section& section : sections_) {
    size_t width = 0;
    const auto assignment = [](const Key& key) {
      return fmt::format("{} = {}", key.option.key(), key.option.Toml());
    };
    for (const Key& key : section.keys) width = std::max(width, assignment(key).size());
    text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section.name);
    for (const Key& key : section.keys) {
      text += fmt::format("{:<{}}  # {}\n", assignment(key), width, Meaning(key.option));
    }
  }
  return text;
}

std::string Sections::Markdown() const {
  std::string text;
  for (const Section& section : sections_) {
    text += fmt::format(
        "{}## `[{}]`\n\n| key | default | takes | binds | meaning |\n|---|---|---|---|---|\n",
        text.empty() ? "" : "\n", section.name);
    for (const Key& key : section.keys) {
      const Option& option = key.option;
      const std::string allowed = option.check().Words();
      const std::string takes = allowed.empty() ? option.Type() : option.Type() + ", " + allowed;
      text += fmt::format("| `{}` | `{}` | {} | {} | {} |\n", option.key(),
                          EscapePipes(option.default_toml()), EscapePipes(takes),
                          TextOf(option.binds()), EscapePipes(option.help()));
    }
  }
  return text;
}

}  // namespace trireme
