#pragma once
#include <string>

#include "report/page/page.h"

namespace trireme {

// The table and what is said below it, without its title. Long ones are thinned, and say so.
void PutTable(std::string& out, const PageTable& table);

bool IsNarrow(const PageTable& table);  // few short columns: stands beside a chart

}  // namespace trireme
