#pragma once
#include <span>

#include "report/page/run_curves.h"

namespace trireme {

// What summaries say, as tables and figures. They are untrusted: what is damaged is left out.

// Rows of facts, a column per run, the best of each row in bold; rows about which no run says
// anything are left out.
PageTable ResultTable(std::span<const NamedRun> runs);
PageTable MachineTable(std::span<const NamedRun> runs);

// Accuracy, loss, time, samples/s: of the run, or the best of each and whose that is.
Figures HeadFigures(std::span<const NamedRun> runs);

// Many runs: a row for each, with the settings in which they differ. Sorted by a click.
PageTable RowsOfRuns(std::span<const NamedRun> runs);

// The accuracy, or the negative RMSE: of the summary, or, where a run has none yet, of its last
// lines; not a number: none.
double TestScoreOf(const RunData& run);

}  // namespace trireme
