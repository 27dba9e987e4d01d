// Chains that become one operation: which do, what they keep, and when their buckets are final.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "graph/chains_test.h"
#include "graph/models/models.h"
#include "graph/paper_engine_test.h"
#include "graph/program.h"

namespace trireme {
namespace {

std::map<std::string, int> CountOps(const Program& program) {
  std::map<std::string, int> counts;
  for (const Instruction& i : program.instructions) ++counts[i.op->name];
  return counts;
}

std::vector<size_t> Begins(std::span<const Range> ranges) {
  std::vector<size_t> begins;
  for (const Range& range : ranges) begins.push_back(range.begin);
  return begins;
}

const Instruction* Find(const Program& program, const OpDef& op) {
  const auto found = std::ranges::find(program.instructions, &op, &Instruction::op);
  return found == program.instructions.end() ? nullptr : &*found;
}

std::shared_ptr<const Program> CompileWith(std::vector<Fusion> fusions, const Graph& graph,
                                           int capacity = 2, Mode mode = Mode::kTrain) {
  return Compile(graph, PaperEngine(std::move(fusions)), capacity, mode, 1);
}

// conv2d, batch_norm, relu and max_pool on 9x9 pictures.
Graph Stem() {
  Builder build({9, 9, 2});
  ValueId x = build.Add("conv2d", {0}, {.channels = 5, .kernel = 3, .stride = 2}, "conv");
  x = build.Add("batch_norm", {x}, {.epsilon = 1e-3f}, "norm");
  x = build.Add("relu", {x});
  x = build.Add("max_pool", {x}, {.kernel = 2, .stride = 2}, "pool");
  x = build.Add("dense", {build.Add("flatten", {x})}, {.channels = 3}, "dense");
  return std::move(build).Finish("softmax_cross_entropy", x);
}

TEST(Fuse, AChainKeepsWhatItsPartsHave) {
  const Graph graph = Stem();
  const auto program = CompileWith({{&kStem}}, graph);
  const Instruction* stem = Find(*program, kStem);
  ASSERT_TRUE(stem);
  const std::span all = program->layout.parameters;
  const auto statistics = Begins(program->layout.statistics);
  EXPECT_EQ(Begins(stem->parameters), Begins(all.first(4)));
  EXPECT_EQ(Begins(stem->statistics), statistics);
  ASSERT_EQ(stem->parts.size(), 4u);
  EXPECT_EQ(Begins(stem->parts[0].parameters), Begins(all.first(2)));
  EXPECT_EQ(Begins(stem->parts[1].parameters), Begins(all.subspan(2, 2)));
  EXPECT_EQ(Begins(stem->parts[1].statistics), statistics);
  EXPECT_EQ(stem->parts[0].attributes.stride, 2);
  EXPECT_EQ(stem->parts[1].attributes.epsilon, 1e-3f);
  EXPECT_EQ(stem->parts[3].attributes.kernel, 2);
  ASSERT_EQ(stem->outputs.size(), 4u);
  const Shape pooled{2, 2, 5}, channel{1, 1, 5};
  EXPECT_EQ(stem->outputs[0].spec.shape, pooled);
  EXPECT_EQ(stem->outputs[1].spec.element, Element::kByte);
  EXPECT_EQ(stem->outputs[2].spec.shape, channel);
  EXPECT_EQ(stem->parts[0].outputs[0].spec.shape, (Shape{4, 4, 5}));

  const auto plain = CompileWith({}, graph);
  EXPECT_EQ(Begins(plain->layout.parameters), Begins(all));
  const auto node = std::ranges::find(program->graph.nodes, &kStem, &Node::op);
  EXPECT_EQ(CountWork(program->graph, *node).multiply_adds, 4 * 4 * (3 * 3 * 2 * 5));
}

TEST(Fuse, LongerChainsComeFirst) {
  const std::vector<Fusion> fusions = {
      {&FindOp("batch_norm_relu")}, {&kConv2dBatchNormRelu}, {&kStem}};
  const auto program = CompileWith(fusions, Stem());
  EXPECT_TRUE(Find(*program, kStem));
  EXPECT_FALSE(Find(*program, kConv2dBatchNormRelu));
}

TEST(Fuse, AConditionSeesTheChainAndTheCapacity) {
  const auto large = [](const Graph& graph, std::span<const Node* const> chain, int capacity) {
    EXPECT_EQ(chain.size(), 3u);
    EXPECT_STREQ(chain[1]->op->name, "batch_norm");
    const Shape y = graph.values[chain[0]->outputs[0]].shape;
    return chain[0]->attributes.kernel == 3 && capacity * y.height * y.width >= 100;
  };
  const std::vector<Fusion> fusions = {{&kConv2dBatchNormRelu, large}};
  EXPECT_FALSE(Find(*CompileWith(fusions, Stem(), 6), kConv2dBatchNormRelu));
  EXPECT_TRUE(Find(*CompileWith(fusions, Stem(), 7), kConv2dBatchNormRelu));
}

// A block with a shortcut; `otherwise`: other names, the shortcut first, the sum turned round.
Graph Block(bool otherwise) {
  Builder build({8, 8, 3});
  const auto name = [&](const char* usual) { return otherwise ? "x." : usual; };
  const auto convolve = [&](ValueId x, int channels, int kernel, const char* usual) {
    x = build.Add("conv2d", {x}, {.channels = channels, .kernel = kernel, .padding = kernel / 2},
                  std::string(name(usual)) + std::to_string(kernel));
    return build.Add("batch_norm", {x}, {}, std::string(name("bn")) + std::to_string(channels));
  };
  const ValueId stem = build.Add("relu", {convolve(0, 4, 3, "stem")});
  ValueId shortcut = otherwise ? convolve(stem, 16, 3, "shortcut") : 0;
  const ValueId inner = build.Add("relu", {convolve(stem, 6, 3, "conv")});
  const ValueId y = convolve(inner, 16, 1, "expand");
  if (!otherwise) shortcut = convolve(stem, 16, 3, "shortcut");
  const ValueId sum =
      build.Add("add", otherwise ? std::vector{shortcut, y} : std::vector{y, shortcut});
  const ValueId pooled = build.Add("global_average_pool", {build.Add("relu", {sum})});
  const ValueId logits = build.Add("dense", {pooled}, {.channels = 3}, name("fc"));
  return std::move(build).Finish("softmax_cross_entropy", logits);
}

TEST(Fuse, ANetworkDescribedDifferentlyIsFusedInTheSameWay) {
  const auto expands = [](const Graph& graph, std::span<const Node* const> chain, int) {
    return chain[0]->attributes.kernel == 1 &&
           graph.values[chain[0]->outputs[0]].shape.channels >=
               2 * graph.values[chain[0]->inputs[0]].shape.channels;
  };
  const std::vector<Fusion> fusions = {{&kFold, expands}, {&kConv2dBatchNormRelu}};
  const auto one = CompileWith(fusions, Block(false)), other = CompileWith(fusions, Block(true));
  EXPECT_EQ(CountOps(*one), CountOps(*other));
  for (const auto& program : {one, other}) {
    const Instruction* fold = Find(*program, kFold);
    ASSERT_TRUE(fold);
    EXPECT_EQ(fold->inputs[0].spec.shape.channels, 6);
    EXPECT_EQ(CountOps(*program)["conv2d_batch_norm_relu"], 2);
  }
}

Graph TwoBlocks() {
  Builder build({2, 2, 3});
  const auto convolve = [&](ValueId x, const char* name) {
    x = build.Add("conv2d", {x}, {.channels = 4, .kernel = 3, .padding = 1}, name);
    return build.Add("batch_norm", {x}, {}, std::string("bn") + name);
  };
  ValueId x = build.Add("relu", {convolve(0, "stem")});
  for (const char* name : {"one", "two"}) {
    x = build.Add("relu", {build.Add("add", {convolve(x, name), x})});
  }
  const ValueId pooled = build.Add("global_average_pool", {x});
  return std::move(build).Finish("softmax_cross_entropy",
                                 build.Add("dense", {pooled}, {.channels = 3}, "fc"));
}

constinit const OpDef kDenseLoss = {.name = "dense_loss",
                                    .summary = "",
                                    .outputs = {"loss", "probabilities"},
                                    .parts = {"dense", "softmax_cross_entropy"}};

TEST(Fuse, NothingIsJoinedThatSomebodyElseReads) {
  for (const Mode mode : {Mode::kTrain, Mode::kEvaluate}) {  // the logits are a result
    EXPECT_FALSE(Find(*CompileWith({{&kDenseLoss}}, Stem(), 1, mode), kDenseLoss));
  }
  for (const bool between : {false, true}) {  // what a part makes beside its result
    Builder build({1, 1, 4});
    const ValueId y = build.Add("batch_norm", {0}, {}, "norm"), mean = y + 1;
    if (between) build.Add("relu", {mean});
    const ValueId x = build.Add("relu", {y});
    if (!between) build.Add("relu", {mean});
    const auto program =
        CompileWith({{&FindOp("batch_norm_relu")}}, std::move(build).Finish("squared_error", x));
    EXPECT_EQ(CountOps(*program)["batch_norm_relu"], between ? 0 : 1);
  }
}

TEST(Fuse, AGradientOfAChainHasAllOutputsAndParameters) {
  const auto program = CompileWith({{&kFold}}, Block(false));
  const Instruction* grad = Find(*program, kFoldGrad);
  const Instruction* fold = Find(*program, kFold);
  ASSERT_TRUE(grad && fold);
  ASSERT_EQ(grad->outputs.size(), 2u);
  EXPECT_EQ(Begins(grad->parameters), Begins(fold->parameters));
  EXPECT_EQ(Begins(WrittenGradients(*grad)), Begins(fold->parameters));
  ASSERT_EQ(grad->parts.size(), 4u);
  EXPECT_EQ(grad->parts[0].attributes.channels, 16);
}

// The sum of two gradients goes both ways back from the end of a block: into the norm before it,
// and past it.
TEST(Fuse, AValueInsideThatOthersReadLaterIsAnOutput) {
  const OpDef& fused = FindOp("add_relu_batch_norm_grad");
  const auto program = CompileWith({{&fused}, {&FindOp("add_relu_grad")}}, TwoBlocks());
  ASSERT_EQ(CountOps(*program)[fused.name], 2);  // the block before the last, and the stem
  const Instruction* const ends = Find(*program, fused);
  ASSERT_EQ(ends->outputs.size(), 2u);
  EXPECT_EQ(ends->outputs[1].value, ends->parts[1].outputs[0].value);
  const auto reads = [&](const Instruction& i) {
    return std::ranges::any_of(i.inputs,
                               [&](const Operand& o) { return o.value == ends->outputs[1].value; });
  };
  const auto first = std::ranges::find_if(program->instructions, reads);
  ASSERT_NE(first, program->instructions.end());
  EXPECT_GT(&*first, ends);
}

// Each bucket is announced once it and all before it are written, no sooner and no later.
void CheckBuckets(const Program& program) {
  size_t written = 0, next = 0;
  std::vector<size_t> last(program.layout.parameters.size());  // instruction that writes it
  for (size_t i = 0; i < program.instructions.size(); ++i) {
    for (const Range& range : WrittenGradients(program.instructions[i])) {
      const auto& all = program.layout.parameters;
      last[size_t(std::ranges::find(all, range.begin, &Range::begin) - all.begin())] = i;
      ++written;
    }
  }
  EXPECT_EQ(written, last.size());
  size_t final_at = 0;
  for (const Bucket& bucket : program.buckets) {
    if (bucket.range.begin >= program.layout.weights) break;
    for (size_t p = 0; p < last.size(); ++p) {
      const Range& range = program.layout.parameters[p];
      if (range.begin >= bucket.range.begin && range.end() <= bucket.range.end()) {
        final_at = std::max(final_at, last[p]);
      }
    }
    const auto& finishes = program.instructions[final_at].finishes;
    EXPECT_EQ(std::ranges::count(finishes, bucket.index), 1) << bucket.index;
    EXPECT_TRUE(std::ranges::is_sorted(finishes));
    ++next;
  }
  size_t announced = 0;
  for (const Instruction& i : program.instructions) announced += i.finishes.size();
  EXPECT_EQ(announced, next);
}

TEST(Fuse, BucketsAreAnnouncedInOrderSeveralAtOnce) {
  for (const char* model : {"resnet18", "resnet50"}) {
    const Graph graph = BuildModel({.name = model}, {64, 64, 3}, 10);
    const std::vector<std::vector<Fusion>> lists = {
        {},
        {{&kFold}, {&kConv2dBatchNormRelu}},
        {{&FindOp("batch_norm_relu")}, {&kNormAndWeightsGrad}}};
    for (const std::vector<Fusion>& fusions : lists) {
      const auto program = CompileWith(fusions, graph);
      CheckBuckets(*program);
      const size_t most = std::ranges::max(program->instructions, {}, [](const Instruction& i) {
                            return i.finishes.size();
                          }).finishes.size();
      EXPECT_EQ(most > 1, !fusions.empty()) << model;
    }
  }
}

// Every bucket of the state is asked for once, before the first part that reads it.
TEST(Fuse, AChainReadsTheBucketsOfAllItsParts) {
  const auto program = CompileWith({{&kFold}, {&kConv2dBatchNormRelu}}, Block(false));
  std::vector<int> asked(program->buckets.size());
  for (const Instruction& i : program->instructions) {
    for (const int bucket : i.first_reads) ++asked[size_t(bucket)];
    EXPECT_TRUE(!i.backward || i.first_reads.empty());
  }
  EXPECT_EQ(asked, std::vector<int>(program->buckets.size(), 1));
  // conv and norm are two buckets; the statistics are those of the tail.
  EXPECT_GE(Find(*program, kConv2dBatchNormRelu)->first_reads.size(), 2u);
}

}  // namespace
}  // namespace trireme
