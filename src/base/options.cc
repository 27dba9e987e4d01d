#include "base/options.h"

#include <fmt/format.h>

#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/text.h"

namespace trireme {
namespace {

using Kind = TomlValue::Kind;

template <class T>
struct ItemOf {
  using type = void;
};
template <class T>
struct ItemOf<std::vector<T>> {
  using type = T;
};

// What a value of type T is called in messages and in the reference.
template <class T>
std::string TypeName() {
  if constexpr (std::is_same_v<T, bool>) {
    return "true or false";
  } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, IntOrWord>) {
    return "an integer";
  } else if constexpr (std::is_floating_point_v<T>) {
    return "a number";
  } else if constexpr (std::is_same_v<T, std::string>) {
    return "a string";
  } else {
    using Item = typename ItemOf<T>::type;
    if constexpr (std::is_integral_v<Item>) return "a list of integers";
    if constexpr (std::is_floating_point_v<Item>) return "a list of numbers";
    return "a list of strings";
  }
}

// Reads one value for one key; `path` and `check` are for the messages.
struct Reader {
  const Check& check;
  std::string_view path;

  [[noreturn]] void Refuse(std::string_view must, const TomlValue& got) const {
    // On the command line 0 and full look alike; quotes only where no number was meant.
    const bool bare = got.kind == Kind::kText && ParseNumber<double>(got.text).has_value();
    const std::string nearest = Nearest(got.text, check.words).value_or("");
    throw UsageError("{} must be {}, got {}{}", path, must, bare ? got.text : got.Shown(),
                     nearest.empty() ? "" : fmt::format("; did you mean {}?", QuoteToml(nearest)));
  }

  template <class T>
  [[noreturn]] void RefuseType(const TomlValue& got) const {
    const bool words_too = std::is_same_v<T, IntOrWord> && !check.words.empty();
    const Check words_only = OneOf(check.words);
    Refuse(words_too ? TypeName<T>() + " or " + words_only.Words() : TypeName<T>(), got);
  }

  static bool Is(const TomlValue& value, Kind kind) {
    return value.kind == kind || value.kind == Kind::kText;
  }

  void Read(const TomlValue& value, bool& out) const {
    const std::string& text = value.text;
    const bool yes = text == "true" || text == "on" || text == "yes";
    const bool no = text == "false" || text == "off" || text == "no";
    if (!Is(value, Kind::kBool) || (!yes && !no)) RefuseType<bool>(value);
    out = yes;
  }

  template <class T>
  requires(std::is_integral_v<T>) void Read(const TomlValue& value, T& out) const {
    // TOML's integers end at 2^63 - 1: a larger unsigned number travels as a string.
    const bool quoted = std::is_unsigned_v<T> && value.kind == Kind::kString;
    const auto number = ParseNumber<T>(value.text);
    if (!Is(value, Kind::kInteger) && !quoted) RefuseType<T>(value);
    if (!number) {
      const size_t sign = value.text.starts_with('-') || value.text.starts_with('+') ? 1 : 0;
      const bool digits = value.text.size() > sign &&
                          value.text.find_first_not_of("0123456789", sign) == std::string::npos;
      if (!digits) RefuseType<T>(value);
      Refuse(fmt::format("between {} and {}", std::numeric_limits<T>::min(),
                         std::numeric_limits<T>::max()),
             value);
    }
    if (!check.Allows(static_cast<double>(*number))) Refuse(check.Words(), value);
    out = *number;
  }

  template <class T>
  requires(std::is_floating_point_v<T>) void Read(const TomlValue& value, T& out) const {
    if (!Is(value, Kind::kFloat) && value.kind != Kind::kInteger) RefuseType<T>(value);
    // The range is checked on what was written: 0.1 is at most 0.1, though 0.1f is more.
    const auto written = ParseNumber<double>(value.text);
    const auto number = ParseNumber<T>(value.text);
    if (!number || !written) {
      const bool numeric = value.kind != Kind::kText || written.has_value();
      Refuse(numeric ? fmt::format("a finite number that fits in {} bits", 8 * sizeof(T))
                     : TypeName<T>(),
             value);
    }
    if (!check.Allows(*written)) Refuse(check.Words(), value);
    out = *number;
  }

  void Read(const TomlValue& value, std::string& out) const {
    if (!Is(value, Kind::kString)) RefuseType<std::string>(value);
    // Other bytes could not be written into the run's config.toml.
    if (!IsUtf8(value.text)) throw UsageError("{} must be UTF-8 text", path);
    if (!check.Allows(std::string_view(value.text))) Refuse(check.Words(), value);
    out = value.text;
  }

  void Read(const TomlValue& value, IntOrWord& out) const {
    const bool word = value.kind == Kind::kString ||
                      (value.kind == Kind::kText && !ParseNumber<double>(value.text));
    if (!word) {
      int64_t number = 0;
      if (!Is(value, Kind::kInteger) || !ParseNumber<int64_t>(value.text)) {
        RefuseType<IntOrWord>(value);
      }
      Read(value, number);
      out = number;
    } else {
      if (check.words.empty() || !check.Allows(std::string_view(value.text))) {
        RefuseType<IntOrWord>(value);
      }
      out = value.text;
    }
  }

  template <class T>
  void Read(const TomlValue& value, std::vector<T>& out) const {
    if (!Is(value, Kind::kList)) RefuseType<std::vector<T>>(value);
    const std::string each = fmt::format("each item of {}", path);
    std::vector<T> list;
    for (const TomlValue& item : Items(value)) {
      T element{};
      Reader{check, each}.Read(item, element);
      list.push_back(std::move(element));
    }
    out = std::move(list);
  }

  // On the command line: 1,2,3 or [1, 2, 3].
  static std::vector<TomlValue> Items(const TomlValue& value) {
    if (value.kind != Kind::kText) return value.items;
    std::string_view text = Trim(value.text);
    if (text.starts_with('[') && text.ends_with(']')) text = Trim(text.substr(1, text.size() - 2));
    std::vector<TomlValue> items;
    if (text.empty()) return items;
    for (const std::string& part : Split(text, ',')) {
      items.push_back({Kind::kText, std::string(Trim(part)), {}});
    }
    return items;
  }
};

template <class T>
std::string WriteToml(const T& value) {
  if constexpr (std::is_same_v<T, std::string>) {
    return value.find('\n') == value.npos ? QuoteToml(value) : QuoteTomlLines(value);
  } else if constexpr (std::is_same_v<T, IntOrWord>) {
    return value.is_word() ? QuoteToml(value.word) : WriteToml(value.number);
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    const std::string digits = fmt::format("{}", value);
    return value > uint64_t{std::numeric_limits<int64_t>::max()} ? QuoteToml(digits) : digits;
  } else if constexpr (std::is_floating_point_v<T>) {
    const std::string shortest = fmt::format("{}", value);
    return shortest.find_first_of(".en") == std::string::npos ? shortest + ".0" : shortest;
  } else if constexpr (std::is_arithmetic_v<T>) {
    return fmt::format("{}", value);
  } else {
    std::vector<std::string> items;
    for (const auto& item : value) items.push_back(WriteToml(item));
    return fmt::format("[{}]", fmt::join(items, ", "));
  }
}

}  // namespace

std::string TextOf(Binds binds) {
  if (binds == Binds::kNothing) return "nothing";
  std::vector<std::string_view> words;
  if (Includes(binds, Binds::kLocal)) words.push_back("this machine");
  if (Includes(binds, Binds::kRanks)) words.push_back("ranks");
  if (Includes(binds, Binds::kClients)) words.push_back("clients");
  if (Includes(binds, Binds::kResume)) words.push_back("resume");
  return fmt::format("{}", fmt::join(words, ", "));
}

Option::Option(std::string key, Target target, Check check, Binds binds, std::string help)
    : key_(std::move(key)),
      target_(target),
      check_(std::move(check)),
      binds_(binds),
      help_(std::move(help)) {
  default_toml_ = Toml();
}

std::string Option::Toml() const {
  return std::visit([](const auto* target) { return WriteToml(*target); }, target_);
}

std::string Option::Type() const {
  return std::visit(
      [](const auto* target) { return TypeName<std::remove_cvref_t<decltype(*target)>>(); },
      target_);
}

bool Option::Set(const TomlValue& value, std::string_view path, bool assign) {
  const Reader reader{check_, path};
  return std::visit(
      [&](auto* target) {
        auto read = *target;
        reader.Read(value, read);
        const bool differs = !(read == *target);
        if (assign) *target = std::move(read);
        return differs;
      },
      target_);
}

}  // namespace trireme
