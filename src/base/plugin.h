#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Libraries that the program opens while it runs, because a machine may lack what they need: MPI,
// CUDA. One exports a C function that gives its table, which begins with two uint32_t: the table's
// version and its size in bytes.
struct PluginKind {
  std::string_view name;            // as in "the MPI plugin"
  const char* symbol;               // the function
  uint32_t version, bytes;          // of the table that this program was built with
  std::string (*how_to_get_one)();  // the end of a sentence, after a semicolon
};

// Opens a file and gives its table, which stays until the process ends. Throws where it is no
// plugin of this kind and version.
const void* OpenPlugin(const PluginKind& kind, const std::string& path);

std::string ProgramFile();
std::string ProgramFolder();
// Where plugins lie: beside the program, or where an installation puts them (../lib/trireme).
std::vector<std::string> PluginFolders();

}  // namespace trireme
