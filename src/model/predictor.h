#pragma once
#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "data/source.h"
#include "flat/device.h"
#include "graph/engine.h"
#include "model/saved_model.h"

namespace trireme {

// What a model says of one sample.
struct Prediction {
  std::span<const float> logits;
  std::span<const float> probabilities;  // the outputs themselves where the loss has no softmax
};

// Runs samples through a saved model, in their order. One thread.
class Predictor {
 public:
  Predictor(const SavedModel& model, Engine& engine);
  ~Predictor();
  void Run(const Source& samples, FunctionRef<void(int64_t index, const Prediction&)> use);

 private:
  const SavedModel& model_;
  Engine& engine_;
  const int capacity_;
  std::unique_ptr<Queue> queue_;
  std::unique_ptr<Executable> executable_;
  Buffer state_;
};

}  // namespace trireme
