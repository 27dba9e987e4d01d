#pragma once
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/sections.h"
#include "base/text.h"

namespace trireme {

// A flag of a subcommand: a row of its table.
//
//   constexpr Flag kFlags[] = {
//       {"--batch", "N", "samples per step, or full", "trainer.batch"},     // stands for a key
//       {"--deterministic", "", "equal bits for any ranks", "trainer.deterministic"},
//       {"--out", "DIR", "where the run is written"},                       // for the command
//       itself
//       {"--json", "", "print JSON"},
//       kSetFlag,
//   };
struct Flag {
  std::string_view name;   // --batch
  std::string_view value;  // what follows it, for the help: N. Empty: a switch, nothing follows.
  std::string_view help;
  std::string_view key = "";  // section.key that it is short for: Args::ApplyTo sets it
};

inline constexpr Flag kSetFlag = {"--set", "KEY=VALUE",
                                  "set any key, as section.key=value; may be repeated"};

// A word without a dash: RECIPE, RUN, FILE...
struct Place {
  enum Count { kRequired, kOptional, kMany };
  std::string_view name;  // as in the usage line: RECIPE
  Count count = kRequired;
  std::string_view help = "";
};

// The command line of a subcommand, read by its tables. `--flag value` and `--flag=value`; after
// `--` nothing is a flag; of a flag given twice the last counts. What the tables do not know is a
// UsageError; asking for a name that they do not have is a bug.
class Args {
 public:
  Args(std::span<const Flag> flags, std::span<const Place> places,
       std::span<const std::string> words);

  bool Has(std::string_view flag) const;
  std::optional<std::string> Value(std::string_view flag) const;
  std::vector<std::string> Values(std::string_view flag) const;  // all of a repeated one, in order

  // The flags as they were given, in order, as words that read the same again.
  std::vector<std::string> FlagsWithout(std::initializer_list<std::string_view> names) const;

  template <class T>
  T Number(std::string_view flag, T otherwise) const {
    const auto text = Value(flag);
    if (!text) return otherwise;
    const auto number = ParseNumber<T>(*text);
    if (number) return *number;
    const auto real = ParseNumber<double>(*text);
    if (std::is_integral_v<T> && real && *real == std::trunc(*real)) {
      throw UsageError("{} must be between {} and {}, got {}", flag, std::numeric_limits<T>::min(),
                       std::numeric_limits<T>::max(), *text);
    }
    throw UsageError("{} must be a {}number, got {}", flag, real ? "whole " : "", QuoteToml(*text));
  }

  std::string Required(std::string_view place) const;
  std::optional<std::string> Optional(std::string_view place) const;
  std::vector<std::string> Many(std::string_view place) const;

  // Every --set and every flag that is short for a key, as section.key=value in their order.
  std::vector<std::string> Settings() const;
  bool Sets(std::string_view key) const;  // whether one of them gives this section.key

  // Gives the sections all of these. They win over a recipe, whether that is loaded before or
  // after.
  void ApplyTo(Sections& sections) const;

 private:
  const Flag& Known(std::string_view name) const;
  const std::vector<std::string>& At(std::string_view place) const;

  std::vector<Flag> flags_;
  std::vector<std::pair<Flag, std::string>> given_;  // in the order of the command line
  std::vector<std::pair<Place, std::vector<std::string>>> places_;
};

}  // namespace trireme
