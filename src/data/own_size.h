#pragma once
#include "data/options.h"

namespace trireme {

// The size of the pictures of images:DIR or pack:FILE where they are small: the shorter side of
// those looked at, if none has a side above 64 pixels. 0 where they are larger, for other sources,
// and where they cannot be looked at.
int FindOwnSize(const DataOptions& options);

}  // namespace trireme
