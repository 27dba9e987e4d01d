#include "cli/candidates.h"

#include <algorithm>

#include "cli/value_words.h"

namespace trireme {
namespace {

class Finder {
 public:
  Finder(std::span<const Command* const> commands, std::string typed)
      : commands_(commands), typed_(std::move(typed)) {}

  Candidates Find(std::span<const std::string> before) {
    if (!before.empty() && before[0] == "help") before = before.subspan(1);
    for (const size_t length : {size_t{2}, size_t{1}}) {
      if (before.size() < length) continue;
      const std::string name = length == 2 ? before[0] + " " + before[1] : before[0];
      for (const Command* command : commands_) {
        if (command->name == name) return OfCommand(*command, before.subspan(length));
      }
    }
    if (before.empty()) OfferNames("");
    if (before.size() == 1) OfferNames(before[0] + " ");
    return std::move(found_);
  }

 private:
  void Offer(std::string word, std::string_view help) {
    if (!word.starts_with(typed_)) return;
    for (const Candidate& known : found_.words) {
      if (known.word == word) return;
    }
    found_.words.push_back({std::move(word), std::string(help)});
  }

  // The next words of the commands that begin with `family`.
  void OfferNames(const std::string& family) {
    for (const Command* command : commands_) {
      if (!command->name.starts_with(family)) continue;
      const std::string rest(command->name.substr(family.size()));
      const size_t space = rest.find(' ');
      const std::string_view help = space == rest.npos ? command->summary : "";
      Offer(rest.substr(0, space), help);
    }
    if (!family.empty()) return;
    Offer("help", "explain a command");
    Offer("--help", "list the commands");
    Offer("--version", "print the version");
  }

  Candidates OfCommand(const Command& command, std::span<const std::string> before) {
    const Flag* waits = nullptr;  // for its value
    size_t place = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      const std::string& word = before[i];
      if (waits != nullptr) {
        waits = nullptr;
      } else if (word == "--") {
        // A command within a command: launch slurm -- train ...
        return Find(before.subspan(i + 1));
      } else if (word.size() > 1 && word[0] == '-') {
        waits = FlagOf(command, word);
      } else if (place < command.places.size() && command.places[place].count != Place::kMany) {
        ++place;
      }
    }
    if (waits != nullptr) {
      OfferValues(*waits, "");
    } else if (const size_t equals = typed_.find('='); typed_[0] == '-' && equals != typed_.npos) {
      const std::string prefix = typed_.substr(0, equals + 1);
      for (const Flag& flag : command.flags) {
        if (!flag.value.empty() && prefix == std::string(flag.name) + "=") {
          OfferValues(flag, prefix);
        }
      }
    } else if (typed_[0] == '-') {
      for (const Flag& flag : command.flags) Offer(std::string(flag.name), flag.help);
      Offer("--help", "explain this command");
    } else if (place < command.places.size()) {
      OfferAll(ValuesOf(command.places[place].name, typed_), "");
    }
    return std::move(found_);
  }

  // One that a value must follow.
  static const Flag* FlagOf(const Command& command, const std::string& word) {
    for (const Flag& flag : command.flags) {
      if (flag.name == word && !flag.value.empty()) return &flag;
    }
    return nullptr;
  }

  // `prefix`: what stands before the value in the same word.
  void OfferValues(const Flag& flag, const std::string& prefix) {
    const std::string value = typed_.substr(prefix.size());
    if (!flag.key.empty()) return OfferAll(ValuesOfKey(flag.key, value), prefix);
    if (!flag.value.starts_with("KEY=")) return OfferAll(ValuesOf(flag.value, value), prefix);
    const size_t equals = value.find('=');
    if (equals == value.npos) return OfferAll(Keys(), prefix);
    // Of a list, the one behind the last comma.
    const size_t comma = value.rfind(',');
    const size_t begin = (comma == value.npos ? equals : comma) + 1;
    OfferAll(ValuesOfKey(value.substr(0, equals), value.substr(begin)),
             prefix + value.substr(0, begin));
  }

  void OfferAll(const Candidates& values, const std::string& prefix) {
    for (const Candidate& value : values.words) Offer(prefix + value.word, value.help);
    found_.files = found_.files || values.files;
  }

  const std::span<const Command* const> commands_;
  const std::string typed_;
  Candidates found_;
};

}  // namespace

Candidates FindCandidates(std::span<const Command* const> commands,
                          std::span<const std::string> words) {
  if (words.empty()) return Finder(commands, "").Find({});
  return Finder(commands, words.back()).Find(words.first(words.size() - 1));
}

}  // namespace trireme
