#include "engine/check/model_check.h"

#include "engine/ref/engine.h"
#include "graph/models/models.h"

namespace trireme::check {
namespace {

TEST(ModelCheck, AcceptsTheJudgeItself) {
  RefEngine engine;
  EXPECT_TRUE(CheckModelAgainstRef(engine, BuildModel({}, {1, 1, 4}, 3), 5, 8));
  EXPECT_TRUE(CheckModelAgainstRef(
      engine, BuildModel({.name = "cnn", .dropout = 0.3}, {8, 8, 1}, 3), 2, 3));
  EXPECT_TRUE(CheckModelAgainstRef(
      engine,
      BuildModel({.name = "mlp", .activation = "sigmoid", .norm = "layer", .loss = "squared-error"},
                 {3, 3, 2}, 4),
      1, 2));
}

// The judge with one wrong number, or with buckets in another order.
class Wrong : public RefEngine {
 public:
  explicit Wrong(bool order) : order_(order) {}
  std::unique_ptr<Executable> Load(std::shared_ptr<const Program> program, Queue& queue) override {
    return std::make_unique<WrongExecutable>(RefEngine::Load(program, queue), program, order_);
  }

 private:
  class WrongExecutable : public Executable {
   public:
    WrongExecutable(std::unique_ptr<Executable> right, std::shared_ptr<const Program> program,
                    bool order)
        : Executable(program), right_(std::move(right)), order_(order) {}
    Event RunShard(const Batch& batch, Slice state, Slice summand, bool accumulate,
                   Ready ready) override {
      const Event event = right_->RunShard(batch, state, summand, accumulate, {});
      if (!order_) summand.host()[0] += 0.01f;
      const auto& buckets = program_->buckets;
      for (size_t i = 0; ready && i < buckets.size(); ++i) {
        ready(buckets[order_ ? buckets.size() - 1 - i : i], event);
      }
      return event;
    }
    void Evaluate(const Batch& batch, Slice state, const Results& results) override {
      right_->Evaluate(batch, state, results);
    }

   private:
    const std::unique_ptr<Executable> right_;
    const bool order_;
  };
  const bool order_;
};

TEST(ModelCheck, FindsMistakes) {
  for (const bool order : {false, true}) {
    Wrong engine(order);
    EXPECT_FALSE(CheckModelAgainstRef(engine, BuildModel({}, {1, 1, 4}, 3), 5, 8));
  }
}

}  // namespace
}  // namespace trireme::check
