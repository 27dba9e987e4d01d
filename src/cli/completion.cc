// What a shell needs to complete a command line. The scripts are short: they ask the program, which
// knows its own tables, with `trireme completion words -- WORDS...`.
#include <fmt/format.h>

#include "cli/candidates.h"
#include "cli/command.h"
#include "cli/commands.h"

namespace trireme {
namespace {

// Bash replaces only what stands behind the last = or : of a word.
constexpr std::string_view kBash =
    R"script(# Completion of trireme for bash: source it, or install it as
# share/bash-completion/completions/trireme.
_trireme() {
  local line=${COMP_LINE:0:COMP_POINT} typed rest prefix word help
  local -a words
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=("")
  typed=${words[${#words[@]} - 1]}
  rest=${typed##*[=:]}
  prefix=${typed%"$rest"}
  COMPREPLY=()
  while IFS=$'\t' read -r word help; do
    if [[ $word == :files ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -f -- "$rest")
    else
      COMPREPLY+=("${word#"$prefix"}")
      [[ $word == *[=:/] ]] && compopt -o nospace 2>/dev/null
    fi
  done < <("${words[0]}" completion words -- "${words[@]:1}" 2>/dev/null)
}
complete -F _trireme trireme
)script";

constexpr std::string_view kZsh = R"script(#compdef trireme
# Completion of trireme for zsh: install it as _trireme in a folder of $fpath, or source it.
_trireme() {
  local word help files=0
  local -a whole open
  while IFS=$'\t' read -r word help; do
    case $word in
      :files) files=1 ;;
      *[=:/]) open+=("$word") ;;
      *) whole+=("${word//:/\\:}:$help") ;;
    esac
  done < <("${(Q)words[1]}" completion words -- "${(@Q)words[2,CURRENT]}" 2>/dev/null)
  (( $#whole )) && _describe -t values value whole
  (( $#open )) && compadd -S '' -a open
  (( files )) && _files
}
if [[ $funcstack[1] == _trireme ]]; then
  _trireme "$@"
else
  compdef _trireme trireme
fi
)script";

constexpr std::string_view kFish = R"script(# Completion of trireme for fish: install it as
# vendor_completions.d/trireme.fish, or source it.
function __trireme_candidates
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    for line in ($words[1] completion words -- $words[2..-1] "$typed" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path "$typed"
        else
            echo $line
        end
    end
end
complete -c trireme -f -a '(__trireme_candidates)'
)script";

struct Shell {
  std::string_view name, script;
};
constexpr Shell kShells[] = {{"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};
constexpr std::string_view kWords = "words";

constexpr Place kPlaces[] = {
    {"bash|zsh|fish", Place::kRequired, "the shell"},
    {"WORD", Place::kMany, "after `words --`: what is typed so far, for the scripts"}};

std::string CandidateLines(const std::vector<std::string>& words) {
  const Candidates found = FindCandidates(AllCommands(), words);
  std::string text;
  for (const Candidate& candidate : found.words) {
    text += candidate.word + (candidate.help.empty() ? "" : "\t" + candidate.help) + "\n";
  }
  return text + (found.files ? ":files\n" : "");
}

int Run(const Args& args, Process& process) {
  const std::string name = args.Required("bash|zsh|fish");
  if (name == kWords) {
    process.out.Write(CandidateLines(args.Many("WORD")));
    return 0;
  }
  if (!args.Many("WORD").empty()) throw UsageError("unexpected argument {}", args.Many("WORD")[0]);
  std::vector<std::string> names;
  for (const Shell& shell : kShells) {
    names.emplace_back(shell.name);
    if (shell.name != name) continue;
    process.out.Write(shell.script);
    return 0;
  }
  throw UsageError("there is no completion for {}; there is {}{}", name, fmt::join(names, ", "),
                   DidYouMean(name, names));
}

}  // namespace

extern const Command kCompletion;
const Command kCompletion = {
    .name = "completion",
    .summary = "print what bash, zsh or fish needs to complete a command line",
    .usage = "trireme completion bash|zsh|fish",
    .examples =
        "trireme completion bash          # in ~/.bashrc: source <(trireme completion bash)\n"
        "trireme completion zsh > ~/.zfunc/_trireme\n"
        "trireme completion fish > ~/.config/fish/completions/trireme.fish\n",
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
