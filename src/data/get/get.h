#pragma once
#include <functional>
#include <string>

#include "data/catalogue.h"
#include "data/get/download.h"

namespace trireme {

struct GetNeeds {
  std::string folder;  // where the data go; written when all of it is right
  std::string from;    // a file or a folder that was fetched elsewhere; empty: from the mirrors
  DownloadTool tool;
  double stall_s = 30;
  std::function<void(const std::string&)> say = [](const std::string&) {};   // a line
  std::function<void(const std::string&)> live = [](const std::string&) {};  // how far it is
};

// Fetches a data set into `needs.folder`, one mirror after the other; continues what was cut;
// checks sizes and checksums. Two at once wait for each other. False: it is there already. Throws
// Error where no mirror gives what it should; a line for each has been said, and what a person may
// fetch elsewhere and bring here: addresses, sizes, checksums.
bool GetData(const OfferedData& data, const GetNeeds& needs);

}  // namespace trireme
