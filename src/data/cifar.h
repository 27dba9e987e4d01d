#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/source.h"

namespace trireme {

// The binary version of CIFAR-10: records of one label byte and 32 x 32 bytes of red, green, blue.
constexpr int64_t kCifarRecordBytes = 1 + 3 * 32 * 32;

// All data_batch*.bin and test_batch*.bin of a folder, plain or .gz, and the class names of
// batches.meta.txt if it is there. Without test_batch*.bin there is no test part.
DataSet OpenCifarFolder(const std::string& folder);

// The records of files, one after the other.
std::unique_ptr<Source> OpenCifarRecords(const std::vector<std::string>& paths);

}  // namespace trireme
