#pragma once
#include <span>
#include <string>
#include <string_view>

#include "report/page/run_curves.h"

namespace trireme {

// What a member of the summary says, in words; empty where it says nothing.
std::string Said(const Json& json, std::string_view key);

// Sections of a page of runs that come from their summaries; without blocks where those are silent.
Section ClassSection(std::span<const NamedRun> runs);      // confusion, ROC curves, each class
Section MistakeSection(std::span<const NamedRun> runs);    // single samples; of one run only
Section StalenessSection(std::span<const NamedRun> runs);  // of updates, and the clients

}  // namespace trireme
