#pragma once
#include <string>
#include <system_error>

namespace trireme {

// This process, or the machine, may open no more files and sockets.
bool IsOutOfFiles(const std::error_code& error);

// What errno says, with the limit where that is the reason.
std::string ErrnoWords(int number);

// "too many open files (ulimit -n is 20)"; `needed`, if not 0: what would be enough.
std::string OutOfFiles(int needed = 0);

}  // namespace trireme
