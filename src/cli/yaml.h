#pragma once
#include <string>

#include "record/json.h"

namespace trireme {

// An object as a document of YAML: one member per line, strings in quotes unless every reader takes
// them for strings.
std::string YamlText(const Json& object);

}  // namespace trireme
