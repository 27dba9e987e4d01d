#pragma once
#include "data/source.h"

namespace trireme {

// The 150 flowers, compiled in; no test part.
DataSet OpenIris();

}  // namespace trireme
