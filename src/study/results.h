#pragma once
#include <string>

#include "report/page/page.h"

namespace trireme {

// FOLDER/page.html, and FOLDER/page.json for `trireme report`.
void WritePage(const Page& page, const std::string& folder);

// runs/STEM-DATE-TIME, with a number if that is taken. Nothing is made.
std::string DatedFolder(const std::string& stem);

}  // namespace trireme
