#pragma once
#include <memory>
#include <string>

#include "engine/cuda/plugin.h"

// The program's half of the border: knows no CUDA.

namespace trireme::cuda {

// The plugin to open: what TRIREME_CUDA_PLUGIN (`from_environment`) says, else the one in `folder`,
// which is the program's. Throws when there is none.
std::string FindPlugin(const char* from_environment, const std::string& folder);

// Opens a plugin. Throws when it is none, or was not built together with this program.
const Table& OpenTable(const std::string& path);

// What a child process of this one finds with the plugin: after a call of CUDA, a process that is
// forked cannot use a card any more, and ranks are forked. Never throws; the survey has the
// problem. Waits `patience_s` at most.
Survey AskInChild(const std::string& path, double patience_s = 60);

// The survey of this machine with the plugin that FindPlugin finds; asked for once.
const Survey& ThisMachine();

}  // namespace trireme::cuda
