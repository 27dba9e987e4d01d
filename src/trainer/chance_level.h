#pragma once
#include <span>
#include <string>

#include "data/source.h"
#include "graph/models/options.h"
#include "record/metrics.h"
#include "trainer/job.h"

namespace trireme {

// The least loss of an answer that is the same for every sample: how often each class occurs, of
// which some may count more.
double GuessingLoss(const ModelOptions& model, const Source& train, int classes,
                    std::span<const float> class_weights = {});
// The same where labels are numbers.
double GuessingLoss(const ModelOptions& model, const Source& train, const TargetScale& target);

// In words, where both losses are no better than that: "the training loss 2.31 is that of guessing
// among 10 classes (2.303)". Empty otherwise.
std::string NoBetterThanGuessing(const Job& job, double train_loss, double test_loss);

// What to try where the rate is far from the usual one, or else lower; empty for a whole rule.
std::string OtherRate(const Job& job);

// Of a run that is over and whose loss is no better than that: a sentence with what to try. Empty
// if it has learned something, or is too short to tell.
std::string LearnedNothing(const Job& job, const Summary& summary);

}  // namespace trireme
