#pragma once
#include <span>
#include <string>

namespace trireme {

// How a gradient that several ranks computed together compares with the one of a rank alone.
struct GradientMatch {
  double difference = 0;  // |together - alone| / |alone|, L2 norms
  double factor = 1;      // that brings alone closest to together
};
GradientMatch CompareGradients(std::span<const float> together, std::span<const float> alone);

// Throws an Error that says what the difference looks like, if there is one beyond `tolerance`.
void JudgeGradients(const GradientMatch& match, int ranks, int shards, double tolerance);

}  // namespace trireme
