#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/source.h"

namespace trireme {

// The idx format of MNIST: 0, 0, type, dimensions, then each size as 4 bytes big-endian, then data.
// Pictures are bytes with 3 (count, height, width) or 4 dimensions (and channels).

// Opens train-* and t10k-* in a folder; without t10k-* there is no test part. The labels must lie
// below the number of `classes`; if that is empty, classes are called 0, 1, ..., largest label.
DataSet OpenIdxFolder(const std::string& folder, std::vector<std::string> classes);

// Pictures of one file, without labels.
std::unique_ptr<Source> OpenIdxPictures(const std::string& path);

bool LooksLikeIdx(std::span<const uint8_t> bytes);

}  // namespace trireme
