#pragma once
#include <string>
#include <vector>

#include "data/options.h"
#include "data/source.h"

namespace trireme {

// csv:FILE, csv:TRAIN,TEST or csv:TRAIN,VALIDATION,TEST. Classes and columns are those of the
// training file, or known ones.
DataSet OpenCsv(const std::string& argument, const DataOptions& options, const KnownData& known);

// The files that an argument names. Names may hold commas: what is there as it stands is one file,
// and otherwise it is cut where files are there.
std::vector<std::string> CutFiles(const std::string& argument);

}  // namespace trireme
