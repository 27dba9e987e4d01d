#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/args.h"
#include "cli/output.h"
#include "model/model_card.h"
#include "model/predictor.h"

namespace trireme {

// Prints predictions in the form that --json, --csv, --logits and --top ask for. One thread.
class PredictionText {
 public:
  PredictionText(const Args& args, const ModelCard& card, Output& out);

  void Print(const std::string& file, int64_t index, const Prediction& prediction);

 private:
  void PrintHead();
  void PrintLine(const std::string& file, int64_t index, const Prediction& prediction);
  void PrintRow(const std::string& file, int64_t index, const Prediction& prediction);
  void PrintObject(const std::string& file, int64_t index, const Prediction& prediction);
  void PrintNumber(const std::string& file, int64_t index, const Prediction& prediction);

  const std::vector<std::string>& classes_;
  const std::optional<TargetScale> target_;  // none: classes
  Output& out_;
  const bool logits_, json_, csv_;
  size_t top_;      // classes to show
  const bool cut_;  // --json and --csv show only those, too
};

}  // namespace trireme
