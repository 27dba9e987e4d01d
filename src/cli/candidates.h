#pragma once
#include <span>
#include <string>
#include <vector>

#include "cli/command.h"

namespace trireme {

// What a shell offers when somebody presses Tab.
struct Candidate {
  std::string word;  // the whole word, not only its rest
  std::string help;
};
struct Candidates {
  std::vector<Candidate> words;
  bool files = false;  // names of files, too: the shell knows them best
};

// What the last of `words`, which follow the program's name and of which it is typed in part, may
// become: from the tables of the commands and of the keys, and from the folders of runs.
Candidates FindCandidates(std::span<const Command* const> commands,
                          std::span<const std::string> words);

}  // namespace trireme
