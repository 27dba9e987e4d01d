#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/options.h"

namespace trireme {

// Who gave a key its value. A later one in this list wins, in whatever order they arrive.
enum class Origin { kDefault, kRecipe, kCommandLine };

// Of "section.key=value".
std::string_view KeyOf(std::string_view assignment);

// The keys of a recipe: sections, each made of one or more options structs.
//
//   Sections sections;
//   sections.Add("data", data_options);
//   sections.Add("strategy", strategy_options);
//   sections.Add("strategy", elastic_options);      // more keys for the same section
//   sections.LoadFile("recipes/iris.toml");         // Origin::kRecipe
//   sections.SetAssignment("trainer.batch=full");   // Origin::kCommandLine
//   sections.Set("trainer.epochs", "3", Origin::kCommandLine, "--epochs 3");
//
// The structs are written at once, belong to the caller, and stay where they are while this lives.
// What is wrong is a UsageError that begins with where it was given and names the nearest key. A
// command line that gives a key two different values is wrong. One thread.
class Sections {
 public:
  template <class T>
  void Add(const std::string& section, T& options) {
    std::vector<Option> rows;
    OptionTable<T> table(options, rows);
    Describe(table);
    Append(section, std::move(rows));
  }

  void LoadFile(const std::string& path);
  void Load(const std::vector<TomlEntry>& entries, std::string_view file);
  void SetAssignment(std::string_view assignment);  // "section.key=value"
  void Set(std::string_view path, std::string_view text, Origin origin, std::string where);

  Origin GivenBy(std::string_view path) const;            // path is "section.key"
  bool IsGiven(std::string_view path) const;              // by anyone
  bool ByHand(std::string_view path) const;               // by the command line
  bool IsChanged(std::string_view path) const;            // differs from its default
  const std::string& Where(std::string_view path) const;  // mnist.toml:14, --batch 64, or empty

  const Option& At(std::string_view path) const { return Known(path).option; }
  std::vector<std::string> Paths() const;  // of all keys, in their order

  // Refuses two keys that say the same thing. The complete config.toml of a run gives every key,
  // so of its pairs only those where both differ from the default count.
  void RefuseBoth(std::string_view path, std::string_view other) const;

  std::string ToToml() const;  // all keys; loading it gives the same values to the bit
  std::string ToToml(FunctionRef<bool(Binds)> which) const;  // the keys with such rows
  std::string HelpText() const;  // the same, with what each key means: a recipe to start from
  std::string Markdown() const;  // the tables of docs/keys.md

 private:
  struct Key {
    std::string path;
    Option option;
    Origin origin = Origin::kDefault;
    std::string where;
  };
  struct Section {
    std::string name;
    std::vector<Key> keys;
  };

  void Append(const std::string& section, std::vector<Option> rows);
  void SetValue(Key& key, const TomlValue& value, Origin origin, std::string where);
  Key& Find(std::string_view section, std::string_view key, const std::string& where);
  const Key& Known(std::string_view path) const;  // a path written in the program
  std::string Suggest(std::string_view section, std::string_view key) const;

  std::vector<Section> sections_;
};

}  // namespace trireme
