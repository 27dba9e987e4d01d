#pragma once
#include <cstdint>

#include "data/source.h"

namespace trireme {

// Which samples of a source go where: functions of the seed, each with random numbers of its own,
// so that none moves what another has chosen.

// Holds out a share of the training part for the test.
void SplitTest(DataSet& data, double fraction, uint64_t seed);

// Holds out a share of what is left to train for validation; 0: none.
void SplitValidation(DataSet& data, double fraction, uint64_t seed);

// Leaves at most so many to train on; 0: all.
void LimitTraining(DataSet& data, int64_t limit, uint64_t seed);

}  // namespace trireme
