#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/option_range.h"
#include "base/toml.h"

namespace trireme {

// A number, or a word that stands for one: trainer.batch = 64 or "full".
// The words are those of the option's check: `AtLeast(1) || OneOf({"full"})`.
struct IntOrWord {
  IntOrWord(int64_t n) : number(n) {}               // NOLINT: `IntOrWord batch = 64;`
  IntOrWord(const char* w) : word(w) {}             // NOLINT: `IntOrWord threads = "auto";`
  IntOrWord(std::string w) : word(std::move(w)) {}  // NOLINT
  bool is_word() const { return !word.empty(); }
  bool operator==(const IntOrWord&) const = default;

  int64_t number = 0;  // when word is empty
  std::string word;
};

// Whom the value of a key binds, besides the process that was given it. There is no default:
// whoever adds a key decides.
enum class Binds : unsigned {
  kNothing = 0,  // each rank may have its own
  kLocal = 1,    // the same, and it is of use on this machine only: others are not told
  kRanks = 2,    // all ranks of a job need the same
  kClients = 4,  // who joins a run needs its server's
  kResume = 8,   // a run keeps it to its end
  kJob = kRanks | kClients,
  kRun = kJob | kResume,
};
constexpr Binds operator|(Binds a, Binds b) { return Binds(unsigned(a) | unsigned(b)); }
constexpr bool Includes(Binds all, Binds part) {
  return (unsigned(all) & unsigned(part)) == unsigned(part);
}
std::string TextOf(Binds binds);  // ranks, clients, resume

// One key of a recipe, bound to the variable that holds its value.
class Option {
 public:
  using Target = std::variant<int*, int64_t*, uint64_t*, float*, double*, bool*, std::string*,
                              IntOrWord*, std::vector<int>*, std::vector<int64_t>*,
                              std::vector<double>*, std::vector<std::string>*>;

  Option(std::string key, Target target, Check check, Binds binds, std::string help);

  const std::string& key() const { return key_; }
  const std::string& help() const { return help_; }
  const std::string& default_toml() const { return default_toml_; }
  const Check& check() const { return check_; }
  Binds binds() const { return binds_; }
  std::string Toml() const;  // the present value; reading it back gives the same bits
  std::string Type() const;  // an integer, a number, true or false, ...

  // Checks `value` and, when `assign`, takes it; whether it is another one than before. `path` is
  // how messages name the key.
  bool Set(const TomlValue& value, std::string_view path, bool assign);

 private:
  std::string key_;
  Target target_;
  Check check_;
  Binds binds_;
  std::string help_;
  std::string default_toml_;
};

// The keys of one options struct. Next to each struct stands a function that fills it:
//
//   struct ElasticOptions { int period = 10; float alpha = 0.1f; };
//   inline void Describe(OptionTable<ElasticOptions>& t) {
//     using enum Binds;
//     t.Add("period", &ElasticOptions::period, AtLeast(1), kJob, "local steps between meetings");
//     t.Add("alpha", &ElasticOptions::alpha, Between(0, 1), kJob, "share of the way to the
//     centre");
//   }
//
// The row is parser, range check, default (what the struct holds now), help and reference page, and
// all that resumes and ranks compare (Binds).
template <class T>
class OptionTable {
 public:
  OptionTable(T& options, std::vector<Option>& rows) : options_(options), rows_(rows) {}

  template <class Member>
  void Add(std::string key, Member T::*member, Check check, Binds binds, std::string help) {
    rows_.emplace_back(std::move(key), &(options_.*member), std::move(check), binds,
                       std::move(help));
  }

 private:
  T& options_;
  std::vector<Option>& rows_;
};

}  // namespace trireme
