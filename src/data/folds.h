#pragma once
#include <cstdint>
#include <vector>

#include "data/source.h"

namespace trireme {

// Cross-validation: the samples are cut into folds, each of which is the test part of one run and
// among the training samples of all others.

// The fold of every sample, 0 to folds - 1: a function of the seed and the samples' labels alone.
// Stratified: of every class, and of all samples, folds have as many up to one. Where labels are
// numbers, only of all samples.
std::vector<int> FoldsOf(const Source& samples, int folds, uint64_t seed,
                         Task task = Task::kClassification);

// Makes fold `fold` (from 1) the test part, and the others the training part. A test part that the
// source has of its own is left out: no fold trains on it and none is tested with it. Its own
// validation part stays what it is.
void TakeFold(DataSet& data, int folds, int fold, uint64_t seed);

}  // namespace trireme
