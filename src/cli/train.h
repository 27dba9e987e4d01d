#pragma once
#include "cli/command.h"

namespace trireme {

// Words behind `train`, read by its tables.
Args ReadTrainWords(std::span<const std::string> words);

// Reads the recipe and the keys of a command line of `train`, and opens nothing else. Throws what
// `train` would throw for them.
void CheckTrainWords(const Args& args);

}  // namespace trireme
