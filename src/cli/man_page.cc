#include "cli/man_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/version.h"
#include "recipe/recipe.h"

namespace trireme {
namespace {

// As text: signs of the language lose their meaning, and hyphens stay what can be copied.
std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  const bool is_request = out.starts_with('.') || out.starts_with('\'');
  return is_request ? "\\&" + out : out;
}

// A paragraph in lines of at most 72 columns.
std::string Paragraph(std::string_view text) {
  std::string out;
  for (const std::string& line : Wrap(Split(text, ' '), " ", 72)) out += Escaped(line) + "\n";
  return out;
}

std::string Section(std::string_view name) { return fmt::format(".SH {}\n", name); }
std::string Bold(std::string_view text) { return fmt::format("\\fB{}\\fR", Escaped(text)); }
std::string Italic(std::string_view text) { return fmt::format("\\fI{}\\fR", Escaped(text)); }
std::string Term(std::string_view head, std::string_view text) {
  return fmt::format(".TP\n{}\n{}", head, Paragraph(text));
}
std::string Verbatim(std::string_view text) {
  std::string out = ".nf\n";
  for (const std::string& line : Split(Trim(text), '\n')) out += Escaped(line) + "\n";
  return out + ".fi\n";
}

std::string Head(const std::string& name, int section, std::string_view summary) {
  std::string upper = name;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(
      ".\\\" Printed by trireme man.\n.TH {} {} {} \"trireme {}\"\n.SH NAME\n{} \\- {}\n",
      Escaped(upper), section, CommitDate(), Version(), Escaped(name), Escaped(summary));
}

std::string PageName(const Command& command) {
  std::string name = fmt::format("trireme-{}", command.name);
  std::ranges::replace(name, ' ', '-');
  return name;
}

struct Row {
  std::string_view name, text;
};
constexpr Row kExitCodes[] = {
    {"0", "done"},
    {"1", "failed"},
    {"2", "wrong usage: a word, a value or a combination that makes no sense"},
    {"130, 143", "stopped by SIGINT or SIGTERM; train has written a checkpoint"},
};
constexpr Row kEnvironment[] = {
    {"TRIREME_RANK, TRIREME_WORLD, TRIREME_MEET",
     "the number of this rank, the number of all, and the HOST:PORT where they meet, when each "
     "process is started by hand"},
    {"TRIREME_SECRET", "the secret that ranks on several machines share"},
    {"TRIREME_MPI_PLUGIN, TRIREME_CUDA_PLUGIN", "the file of a plugin"},
};

std::string Overview(std::span<const Command* const> commands) {
  std::string text = Head("trireme", 1, "train neural networks on one core or on many ranks");
  text += Section("SYNOPSIS") + Bold("trireme") + " " + Italic("COMMAND") + " [" +
          Italic("ARGUMENTS") + "]\n.br\n" + Bold("trireme") + " " + Italic("COMMAND") + " " +
          Bold("--help") + "\n.br\n" + Bold("trireme --version") + " [" + Bold("--long") + "]\n";
  text += Section("DESCRIPTION") +
          Paragraph(
              "trireme trains neural networks with one program and one recipe: on one core, "
              "on all cores of a machine, or on many processes and hosts. A recipe is a TOML "
              "file (trireme-recipe(5)); every key is also a flag --set section.key=value.");
  text += Section("COMMANDS");
  for (const Command* command : commands) text += Term(Bold(command->name), command->summary);
  text += Section("ENVIRONMENT");
  for (const Row& row : kEnvironment) text += Term(Bold(row.name), row.text);
  text += Section("EXIT STATUS");
  for (const Row& row : kExitCodes) text += Term(row.name, row.text);
  text += Section("SEE ALSO");
  for (const Command* command : commands)
    text += fmt::format(".BR {} (1),\n", Escaped(PageName(*command)));
  return text + ".BR trireme\\-recipe (5)\n";
}

std::string PageOf(const Command& command) {
  const std::string name = PageName(command);
  std::string text = Head(name, 1, command.summary);
  text += Section("SYNOPSIS") + Paragraph(command.usage);
  if (!command.places.empty()) text += Section("ARGUMENTS");
  for (const Place& place : command.places) text += Term(Italic(place.name), place.help);
  text += Section("OPTIONS");
  for (const Flag& flag : command.flags) {
    const std::string value = flag.value.empty() ? "" : " " + Italic(flag.value);
    text += Term(Bold(flag.name) + value, flag.key.empty()
                                              ? std::string(flag.help)
                                              : fmt::format("{} [{}]", flag.help, flag.key));
  }
  text += Term(Bold("--help"), "print a summary of this page");
  text += Section("EXAMPLES") + Verbatim(command.examples);
  return text + Section("SEE ALSO") + ".BR trireme (1),\n.BR trireme\\-recipe (5)\n";
}

std::string RecipePage() {
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  std::string text = Head("trireme-recipe", 5, "a TOML file that describes a run");
  text += Section("DESCRIPTION") +
          Paragraph(
              "A recipe holds sections with keys. trireme train RECIPE follows it, trireme "
              "list recipes shows those that are part of the program, and trireme train "
              "--help-config prints a complete one. A flag --set section.key=value wins over "
              "the recipe.");
  std::string last;
  for (const std::string& path : sections.Paths()) {
    const Option& option = sections.At(path);
    const std::string section = path.substr(0, path.find('.'));
    if (section != last) text += Section(fmt::format("\"[{}]\"", section));
    last = section;
    std::string words = option.help();
    const std::string range = option.check().Words();
    words += fmt::format(" ({}{}; default: {})", option.Type(), range.empty() ? "" : ", " + range,
                         option.default_toml());
    text += Term(Bold(path.substr(section.size() + 1)), words);
  }
  return text + Section("SEE ALSO") + ".BR trireme (1),\n.BR trireme\\-train (1)\n";
}

}  // namespace

std::vector<ManPage> ManPages(std::span<const Command* const> commands) {
  std::vector<ManPage> pages = {{"trireme", 1, Overview(commands)}};
  for (const Command* command : commands) {
    pages.push_back({PageName(*command), 1, PageOf(*command)});
  }
  pages.push_back({"trireme-recipe", 5, RecipePage()});
  return pages;
}

}  // namespace trireme
