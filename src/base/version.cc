#include "base/version.h"

namespace trireme {

std::string_view Version() { return TRIREME_VERSION; }

}  // namespace trireme
