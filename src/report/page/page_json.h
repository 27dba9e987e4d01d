#pragma once
#include <string>
#include <string_view>

#include "report/page/page.h"

namespace trireme {

// A page as a file, page.json: sweeps, comparisons, replays and predictions leave one beside their
// own results, and `trireme report` writes it as HTML. Numbers that are not finite are null.
std::string PageJson(const Page& page);

// Strict: an unknown kind of block, a missing or unknown key, a curve whose x and y differ in
// length, a matrix with rows of another length than its names is an Error that names `who`.
Page ParsePageJson(std::string_view text, std::string_view who);
Page ReadPageJson(const std::string& path);

}  // namespace trireme
