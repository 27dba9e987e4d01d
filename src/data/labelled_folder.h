#pragma once
#include <string>

#include "data/folder_scan.h"

namespace trireme {

// Pictures in one folder, their classes in a csv file: a line for each with its name and its class.

// The file with the classes of the pictures that lie in `folder`: labels.csv or the only csv file
// there, else FOLDER.csv beside it. Empty: there is none, or no pictures lie there.
std::string FindLabelFile(const std::string& folder);

// The pictures below the folder, class by class as ScanFolder gives them. Refuses a picture without
// a line, a line without its picture, and what csv files refuse of labels.
ScannedFolder ScanLabelledFolder(const std::string& folder, const std::string& label_file);

}  // namespace trireme
