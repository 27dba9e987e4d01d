#include "cli/args.h"

#include <algorithm>

#include "base/assert.h"

namespace trireme {
namespace {

const Flag& FindFlag(std::span<const Flag> flags, std::string_view name) {
  std::vector<std::string> names;
  for (const Flag& flag : flags) {
    if (flag.name == name) return flag;
    names.emplace_back(flag.name);
  }
  throw UsageError("unknown flag {}{}", name, DidYouMean(name, names));
}

}  // namespace

Args::Args(std::span<const Flag> flags, std::span<const Place> places,
           std::span<const std::string> words)
    : flags_(flags.begin(), flags.end()) {
  for (const Place& place : places) places_.push_back({place, {}});
  size_t place = 0;
  bool flags_ended = false;
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool is_flag = !flags_ended && word.size() > 1 && word[0] == '-';
    if (!flags_ended && word == "--") {
      flags_ended = true;
    } else if (is_flag) {
      const size_t equals = word.find('=');
      const Flag& flag = FindFlag(flags, word.substr(0, equals));
      const bool attached = equals != word.npos;
      if (flag.value.empty()) {
        if (attached) throw UsageError("{} takes no value, got {}", flag.name, word);
        given_.push_back({flag, ""});
      } else if (attached) {
        given_.push_back({flag, word.substr(equals + 1)});
      } else if (i + 1 < words.size() && !words[i + 1].starts_with("--")) {
        given_.push_back({flag, words[++i]});
      } else {
        throw UsageError("{} needs a value: {} {}", flag.name, flag.name, flag.value);
      }
    } else {
      if (place == places_.size()) throw UsageError("unexpected argument {}", QuoteToml(word));
      places_[place].second.push_back(word);
      if (places_[place].first.count != Place::kMany) ++place;
    }
  }
  for (const auto& [p, found] : places_) {
    if (p.count == Place::kRequired && found.empty()) throw UsageError("{} is missing", p.name);
  }
}

const Flag& Args::Known(std::string_view name) const {
  const auto at = std::find_if(flags_.begin(), flags_.end(),
                               [&](const Flag& flag) { return flag.name == name; });
  TRIREME_ASSERT(at != flags_.end());
  return *at;
}

bool Args::Has(std::string_view flag) const {
  Known(flag);
  return std::any_of(given_.begin(), given_.end(),
                     [&](const auto& given) { return given.first.name == flag; });
}

std::vector<std::string> Args::Values(std::string_view flag) const {
  TRIREME_ASSERT(!Known(flag).value.empty());
  std::vector<std::string> values;
  for (const auto& [f, value] : given_) {
    if (f.name == flag) values.push_back(value);
  }
  return values;
}

std::optional<std::string> Args::Value(std::string_view flag) const {
  std::vector<std::string> values = Values(flag);
  if (values.empty()) return std::nullopt;
  return std::move(values.back());
}

std::vector<std::string> Args::FlagsWithout(std::initializer_list<std::string_view> names) const {
  std::vector<std::string> words;
  for (const auto& [flag, value] : given_) {
    if (std::find(names.begin(), names.end(), flag.name) != names.end()) continue;
    if (value.starts_with("--")) {
      words.push_back(fmt::format("{}={}", flag.name, value));
      continue;
    }
    words.emplace_back(flag.name);
    if (!flag.value.empty()) words.push_back(value);
  }
  return words;
}

const std::vector<std::string>& Args::At(std::string_view place) const {
  const auto at = std::find_if(places_.begin(), places_.end(),
                               [&](const auto& p) { return p.first.name == place; });
  TRIREME_ASSERT(at != places_.end());
  return at->second;
}

std::string Args::Required(std::string_view place) const {
  TRIREME_ASSERT(!At(place).empty());  // the constructor saw to it
  return At(place)[0];
}

std::optional<std::string> Args::Optional(std::string_view place) const {
  if (At(place).empty()) return std::nullopt;
  return At(place)[0];
}

std::vector<std::string> Args::Many(std::string_view place) const { return At(place); }

std::vector<std::string> Args::Settings() const {
  std::vector<std::string> settings;
  for (const auto& [flag, value] : given_) {
    if (flag.name == kSetFlag.name) {
      settings.push_back(value);
    } else if (!flag.key.empty()) {
      settings.push_back(fmt::format("{}={}", flag.key, flag.value.empty() ? "true" : value));
    }
  }
  return settings;
}

bool Args::Sets(std::string_view key) const {
  for (const std::string& setting : Settings()) {
    if (KeyOf(setting) == key) return true;
  }
  return false;
}

void Args::ApplyTo(Sections& sections) const {
  for (const auto& [flag, value] : given_) {
    if (flag.name == kSetFlag.name) {
      sections.SetAssignment(value);
    } else if (!flag.key.empty()) {
      const bool is_switch = flag.value.empty();
      sections.Set(flag.key, is_switch ? "true" : value, Origin::kCommandLine,
                   is_switch ? std::string(flag.name) : fmt::format("{} {}", flag.name, value));
    }
  }
}

}  // namespace trireme
