#pragma once
#include <string>

#include "data/source.h"

namespace trireme {

// Pictures made when they are read, from a hash of their index: any number of them takes no memory.
// A class is a pattern of 8 x 8 patches, half as strong as the picture; the rest is noise. They can
// be learned, always look the same, and the test part's noise is its own.
// `argument` is "HxWxC:CLASSES:N", for N training and N / 5 (at least 1) test samples.
DataSet OpenSynthetic(const std::string& argument);

}  // namespace trireme
