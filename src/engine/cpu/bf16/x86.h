#pragma once
#include <string>

namespace trireme::cpu {

// Whether the processor has the instructions and the system saves their registers; else what is
// missing.
std::string MissingAvx512BFloat();
std::string MissingAmx();

}  // namespace trireme::cpu
