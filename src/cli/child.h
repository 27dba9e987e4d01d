#pragma once
#include <string>
#include <vector>

namespace trireme {

// Runs this program again with other words; what it prints goes to the file `log`. Returns its exit
// code, 128 + the signal if one ended it. A signal to this process that would end it ends the child
// first where both are in the foreground; the child's code says so.
int RunChild(const std::vector<std::string>& words, const std::string& log);

}  // namespace trireme
