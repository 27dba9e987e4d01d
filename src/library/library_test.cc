// As a program that knows the public header only.
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stop_token>
#include <thread>

#include "library/trireme.h"

namespace {

namespace fs = std::filesystem;
using namespace trireme;

constexpr int kSamples = 120, kValues = 4, kClasses = 3;

// Three clouds that a small network tells apart.
struct Clouds {
  std::vector<float> values;
  std::vector<std::int32_t> labels;
  std::vector<float> numbers;

  Clouds() {
    for (int i = 0; i < kSamples; ++i) {
      const int label = i % kClasses;
      float sum = 0;
      for (int v = 0; v < kValues; ++v) {
        const auto noise = float((i * 37 + v * 101) % 64) / 64;
        values.push_back(noise + (v == label ? 2.0f : 0.0f));
        sum += values.back() * float(v + 1);
      }
      labels.push_back(label);
      numbers.push_back(sum);
    }
  }

  Data Classes() const {
    return {.shape = {1, 1, kValues}, .train = {.values = values, .labels = labels}};
  }
  Data Numbers() const {
    return {.shape = {1, 1, kValues}, .train = {.values = values, .numbers = numbers}};
  }
};

Recipe Small() {
  return Recipe()
      .Set("model.name", "mlp:4-8-3")
      .Set("optimizer.lr", 0.1)
      .Set("optimizer.schedule", "constant")
      .Set("trainer.epochs", 4)
      .Set("trainer.batch", 16)
      .Set("trainer.threads", 1)
      .Set("trainer.deterministic", true);
}

// The words of what `fn` throws.
template <class E, class F>
std::string Thrown(F fn) {
  try {
    fn();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

class LibraryTest : public testing::Test {
 protected:
  LibraryTest() {
    std::string name = fs::temp_directory_path() / "trireme-library-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~LibraryTest() override { fs::remove_all(folder_); }
  std::string At(const std::string& name) const { return folder_ / name; }

  std::string Csv() const {
    std::ofstream file(At("clouds.csv"));
    file.precision(9);
    for (int i = 0; i < kSamples; ++i) {
      for (int v = 0; v < kValues; ++v) file << clouds_.values[size_t(i * kValues + v)] << ',';
      file << clouds_.labels[size_t(i)] << '\n';
    }
    return At("clouds.csv");
  }

  const Clouds clouds_;

 private:
  fs::path folder_;
};

TEST_F(LibraryTest, EveryEpochIsTold) {
  std::vector<Epoch> epochs;
  const Result result =
      Train(Small(), clouds_.Classes(), {.run = At("run"), .on_epoch = [&](const Epoch& epoch) {
                                           epochs.push_back(epoch);
                                           return true;
                                         }});
  ASSERT_EQ(epochs.size(), 4u);
  for (size_t i = 0; i < epochs.size(); ++i) {
    EXPECT_EQ(epochs[i].epoch, double(i + 1));
    EXPECT_EQ(epochs[i].epochs, 4);
    EXPECT_EQ(epochs[i].step, int64_t(i + 1) * 6);  // 96 samples to train, 16 at a time
    EXPECT_TRUE(epochs[i].train_loss && epochs[i].test_loss && epochs[i].test_accuracy);
    EXPECT_FALSE(epochs[i].validation_loss || epochs[i].test_rmse);
    EXPECT_FLOAT_EQ(float(epochs[i].learning_rate), 0.1f);
  }
  EXPECT_LT(*epochs[3].train_loss, *epochs[0].train_loss);
  EXPECT_EQ(result.end, End::kDone);
  EXPECT_EQ(result.run, At("run"));
  EXPECT_EQ(result.epochs, 4);
  EXPECT_EQ(result.steps, 24);
  EXPECT_EQ(result.test_accuracy, epochs[3].test_accuracy);
  EXPECT_EQ(result.parameters_sha256.size(), 64u);
  EXPECT_TRUE(fs::exists(At("run/summary.json")));
}

TEST_F(LibraryTest, MemoryTrainsTheWeightsThatAFileDoes) {
  const Result memory = Train(Small(), clouds_.Classes(), {.run = At("memory")});
  const Result file =
      Train(Small().Set("data.source", "csv:" + Csv()), TrainOptions{.run = At("file")});
  EXPECT_EQ(memory.parameters_sha256, file.parameters_sha256);
  EXPECT_EQ(memory.test_loss, file.test_loss);
}

TEST_F(LibraryTest, RanksThatAreThreadsShareTheMemory) {
  const Recipe recipe = Small().Set("trainer.shards", 2);
  const Result one = Train(recipe, clouds_.Classes(), {.run = At("one")});
  const Result two =
      Train(Recipe(recipe).Set("transport.ranks", 2), clouds_.Classes(), {.run = At("two")});
  EXPECT_EQ(one.parameters_sha256, two.parameters_sha256);
}

TEST_F(LibraryTest, PartsOfItsOwnAreUsed) {
  Data data = clouds_.Classes();
  const auto part = [&](size_t begin, size_t count) {
    return Samples{.values = std::span(clouds_.values).subspan(begin * kValues, count * kValues),
                   .labels = std::span(clouds_.labels).subspan(begin, count)};
  };
  data.train = part(0, 90);
  data.validation = part(90, 12);
  data.test = part(102, 18);
  data.classes = {"a", "b", "c"};
  const Result result = Train(Small(), data, {.run = At("run")});
  EXPECT_TRUE(result.validation_accuracy && result.test_accuracy);
  EXPECT_EQ(result.steps, 24);  // 90 samples, 16 at a time
  EXPECT_EQ(Predictor(At("run")).classes(), data.classes);
}

TEST_F(LibraryTest, BytesTrainToo) {
  std::vector<std::uint8_t> bytes;
  for (const float value : clouds_.values) bytes.push_back(std::uint8_t(value * 80));
  const Data data{.shape = {1, 1, kValues}, .train = {.bytes = bytes, .labels = clouds_.labels}};
  const Result result = Train(Small().Set("trainer.epochs", 20), data, {.run = At("run")});
  EXPECT_GT(result.test_accuracy, 0.9);
  EXPECT_EQ(Predictor(At("run")).Classify(bytes).size(), size_t(kSamples));
}

// ---- stopping

class StopTest : public LibraryTest, public testing::WithParamInterface<int> {};

TEST_P(StopTest, AStoppedRunGoesOnToTheSameWeights) {
  const Recipe recipe = Small().Set("transport.ranks", GetParam()).Set("trainer.shards", 2);
  const Result whole = Train(recipe, clouds_.Classes(), {.run = At("whole")});
  const Result part =
      Train(recipe, clouds_.Classes(),
            {.run = At("part"), .on_epoch = [](const Epoch& epoch) { return epoch.epoch < 2; }});
  EXPECT_EQ(part.end, End::kStopped);
  EXPECT_GE(part.steps, 12);
  EXPECT_LE(part.steps, GetParam() == 1 ? 12 : 17);  // several must hear of it
  EXPECT_EQ(part.epochs, 2);
  EXPECT_TRUE(part.test_accuracy);
  EXPECT_FALSE(fs::exists(At("part/summary.json")));
  EXPECT_NO_THROW(Predictor(At("part")));

  int told = 0;
  const Result rest = Train(Recipe::OfRun(At("part")), clouds_.Classes(),
                            {.run = At("part"), .resume = true, .on_epoch = [&](const Epoch&) {
                               ++told;
                               return true;
                             }});
  EXPECT_EQ(told, 2);
  EXPECT_EQ(rest.end, End::kDone);
  EXPECT_EQ(rest.steps, whole.steps);
  EXPECT_EQ(rest.parameters_sha256, whole.parameters_sha256);
}
INSTANTIATE_TEST_SUITE_P(Ranks, StopTest, testing::Values(1, 2, 3));

TEST_F(LibraryTest, AnotherThreadStopsIt) {
  std::stop_source source;
  std::atomic<bool> began = false;
  std::jthread other([&] {
    while (!began) std::this_thread::yield();
    source.request_stop();
  });
  const Result result = Train(Small().Set("trainer.epochs", 1'000'000), clouds_.Classes(),
                              {.run = At("run"),
                               .on_epoch =
                                   [&](const Epoch&) {
                                     began = true;
                                     return true;
                                   },
                               .stop = source.get_token()});
  EXPECT_EQ(result.end, End::kStopped);
  EXPECT_GT(result.steps, 0);
}

// What was trained in an earlier life counts.
TEST_F(LibraryTest, AResumedRunIsStoppedBeforeItsFirstEpochEnds) {
  const auto two = [](const Epoch& epoch) { return epoch.epoch < 2; };
  Train(Small(), clouds_.Classes(), {.run = At("run"), .on_epoch = two});
  std::stop_source source;
  source.request_stop();
  const Result rest = Train(Recipe::OfRun(At("run")), clouds_.Classes(),
                            {.run = At("run"), .resume = true, .stop = source.get_token()});
  EXPECT_EQ(rest.end, End::kStopped);
  EXPECT_GE(rest.epochs, 2);
  EXPECT_EQ(rest.epochs, double(rest.steps / 6));  // 96 samples to train, 16 at a time
}

TEST_F(LibraryTest, AWishAtTheLastEpochChangesNothing) {
  const Result result =
      Train(Small(), clouds_.Classes(), {.run = At("run"), .on_epoch = [](const Epoch& epoch) {
                                           return epoch.epoch < double(epoch.epochs);
                                         }});
  EXPECT_EQ(result.end, End::kDone);
}

TEST_F(LibraryTest, WhatACallbackThrowsComesOutAfterACheckpoint) {
  struct Own {};
  for (const int ranks : {1, 2}) {
    const std::string run = At("run" + std::to_string(ranks));
    EXPECT_THROW(Train(Small().Set("transport.ranks", ranks), clouds_.Classes(),
                       {.run = run, .on_epoch = [](const Epoch&) -> bool { throw Own(); }}),
                 Own);
    const Result rest = Train(Recipe::OfRun(run), clouds_.Classes(), {.run = run, .resume = true});
    EXPECT_EQ(rest.end, End::kDone);
  }
  EXPECT_THROW(
      Train(Recipe(), clouds_.Classes(),
            {.run = At("loud"), .on_message = [](Severity, std::string_view) { throw Own(); }}),
      Own);
}

TEST_F(LibraryTest, AServerStopsLikewise) {
  const Recipe recipe = Small()
                            .Set("trainer.deterministic", false)
                            .Set("strategy.name", "async-ps")
                            .Set("transport.ranks", 3)
                            .Set("trainer.epochs", 500);
  const Result result =
      Train(recipe, clouds_.Classes(),
            {.run = At("run"), .on_epoch = [](const Epoch& epoch) { return epoch.epoch < 2; }});
  EXPECT_EQ(result.end, End::kStopped);
  EXPECT_GE(result.steps, 12);
  const Result rest = Train(Recipe::OfRun(At("run")).Set("trainer.epochs", 501), clouds_.Classes(),
                            {.run = At("run"), .resume = true, .on_epoch = [](const Epoch& epoch) {
                               return epoch.epoch < 4;
                             }});
  EXPECT_EQ(rest.end, End::kStopped);
  EXPECT_GE(rest.steps, result.steps);  // an epoch that was done may be told only then
}

TEST_F(LibraryTest, ARunThatIsDoneIsDone) {
  const Result first = Train(Small(), clouds_.Classes(), {.run = At("run")});
  const Recipe recipe = Recipe::OfRun(At("run"));
  const TrainOptions options{.run = At("run"), .resume = true};
  EXPECT_EQ(Train(recipe, clouds_.Classes(), options).parameters_sha256, first.parameters_sha256);
  const Result more = Train(Recipe(recipe).Set("trainer.epochs", 5), clouds_.Classes(), options);
  EXPECT_EQ(more.steps, 30);
}

// ---- the caller's process

TEST_F(LibraryTest, SignalsAndOutputAreTheCallers) {
  constexpr std::array kSignals = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1};
  const auto handlers = [&] {
    std::vector<void*> found;
    for (const int signal : kSignals) {
      struct sigaction action;
      sigaction(signal, nullptr, &action);
      found.push_back(reinterpret_cast<void*>(action.sa_handler));
    }
    return found;
  };
  const std::vector<void*> before = handlers();
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const Recipe recipe = Recipe().Set("transport.ranks", 2).Set("trainer.epochs", 2);
  Train(recipe, clouds_.Classes(), {.run = At("quiet"), .on_epoch = [&](const Epoch&) {
                                      EXPECT_EQ(handlers(), before);
                                      return true;
                                    }});
  std::vector<std::string> said;
  Train(recipe, clouds_.Classes(),
        {.run = At("run"),
         .on_message = [&](Severity, std::string_view text) { said.emplace_back(text); }});
  Predictor(At("run")).Predict(clouds_.values);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_EQ(handlers(), before);
  const auto about = [&](const char* words) {
    return std::ranges::any_of(said,
                               [&](const std::string& text) { return text.starts_with(words); });
  };
  EXPECT_TRUE(about("train: no recipe: ")) << testing::PrintToString(said);
  EXPECT_TRUE(about("ranks: ")) << testing::PrintToString(said);
}

TEST_F(LibraryTest, TwoThreadsTrainAtTheSameTime) {
  std::array<Result, 3> results;
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < results.size(); ++i) {
      threads.emplace_back([&, i] {
        results[i] = Train(Small().Set("transport.ranks", 2), clouds_.Classes(),
                           {.run = At("run" + std::to_string(i))});
        Predictor(results[i].run).Predict(clouds_.values);
      });
    }
  }
  EXPECT_EQ(results[0].parameters_sha256, results[1].parameters_sha256);
  EXPECT_EQ(results[0].parameters_sha256, results[2].parameters_sha256);
}

// ---- predicting

TEST_F(LibraryTest, APredictorSaysOfMemoryWhatItSaysOfAFile) {
  Train(Small().Set("trainer.epochs", 30).Set("trainer.checkpoint_epochs", 0), clouds_.Classes(),
        {.run = At("run")});
  Predictor predictor(At("run"), {.threads = 1});
  EXPECT_EQ(predictor.shape(), (Shape{1, 1, kValues}));
  EXPECT_EQ(predictor.outputs(), kClasses);
  EXPECT_EQ(predictor.classes(), (std::vector<std::string>{"0", "1", "2"}));
  const std::vector<float> shares = predictor.Predict(clouds_.values);
  ASSERT_EQ(shares.size(), size_t(kSamples * kClasses));
  for (size_t i = 0; i < shares.size(); i += kClasses) {
    EXPECT_NEAR(shares[i] + shares[i + 1] + shares[i + 2], 1, 1e-5);
  }
  EXPECT_EQ(predictor.Classify(clouds_.values),
            std::vector<int>(clouds_.labels.begin(), clouds_.labels.end()));
  EXPECT_EQ(predictor.PredictFile("csv:" + Csv()), shares);
  Predictor moved = std::move(predictor);
  EXPECT_EQ(moved.Predict(std::span(clouds_.values).first(kValues)),
            std::vector<float>(shares.begin(), shares.begin() + kClasses));
}

TEST_F(LibraryTest, NumbersArePredictedInTheirUnit) {
  const Result result = Train(Recipe()
                                  .Set("model.name", "mlp:4-16-1")
                                  .Set("trainer.epochs", 60)
                                  .Set("trainer.checkpoint_epochs", 0),
                              clouds_.Numbers(), {.run = At("run")});
  ASSERT_TRUE(result.test_rmse);
  EXPECT_FALSE(result.test_accuracy);
  Predictor predictor(At("run"));
  EXPECT_EQ(predictor.outputs(), 1);
  EXPECT_TRUE(predictor.classes().empty());
  const std::vector<float> found = predictor.Predict(clouds_.values);
  double squares = 0, spread = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    squares += std::pow(found[i] - clouds_.numbers[i], 2);
    spread += std::pow(clouds_.numbers[i] - 7, 2);
  }
  EXPECT_LT(squares, spread / 10);
  EXPECT_EQ(Thrown<UsageError>([&] { predictor.Classify(clouds_.values); }),
            "this model predicts a number, not a class; call Predict");
}

// ---- recipes, and what is wrong

TEST_F(LibraryTest, ARecipeIsAValue) {
  const Recipe iris = Recipe::Load("iris");
  Recipe copy = iris;
  copy.Set("trainer.epochs", 7).Set("trainer.epochs", 8).Set("data.shuffle", false);
  EXPECT_NE(copy.Toml(), iris.Toml());
  EXPECT_NE(copy.Toml().find("\nepochs = 8"), std::string::npos);
  EXPECT_NE(copy.Toml().find("\nshuffle = false"), std::string::npos);
  std::ofstream(At("copy.toml")) << copy.Toml();
  EXPECT_EQ(Recipe::Load(At("copy.toml")).Toml(), copy.Toml());
  const Recipe moved = std::move(copy);
  copy = iris;
  EXPECT_EQ(copy.Toml(), iris.Toml());
  EXPECT_EQ(Train(Recipe(iris).Set("trainer.epochs", 1), TrainOptions{.run = At("iris")}).epochs,
            1);
  EXPECT_FALSE(Version().empty());
}

TEST_F(LibraryTest, WhatIsWrongIsSaid) {
  EXPECT_EQ(Thrown<UsageError>([] { Recipe().Set("trainer.epoch", 3); }),
            "Set(\"trainer.epoch\", \"3\"): unknown key trainer.epoch; did you mean "
            "trainer.epochs?");
  Recipe recipe = Small();
  const std::string before = recipe.Toml();
  EXPECT_NE(Thrown<UsageError>([&] { recipe.Set("trainer.batch", -1); }).find("trainer.batch"),
            std::string::npos);
  EXPECT_EQ(recipe.Toml(), before);
  EXPECT_NE(Thrown<UsageError>([] { Recipe::Load("irsi"); }).find("did you mean iris"),
            std::string::npos);
  EXPECT_NE(Thrown<UsageError>([&] { Recipe::OfRun(At("none")); }), "nothing was thrown");

  const auto refused = [&](const Recipe& wrong, const std::string& run = "run") {
    return Thrown<UsageError>(
        [&] { Train(wrong, clouds_.Classes(), {.run = run.empty() ? "" : At(run)}); });
  };
  EXPECT_EQ(refused(Small(), ""), "TrainOptions::run names no directory");
  for (const char* transport : {"shm", "tcp", "mpi"}) {
    EXPECT_EQ(refused(Small().Set("transport.name", transport).Set("transport.ranks", 2)),
              std::string("transport.name = \"") + transport +
                  "\" starts or joins other processes, which the library does not do; use "
                  "\"threads\", or start the program trireme");
  }
  EXPECT_NE(refused(Small().Set("transport.hosts", "hosts")).find("transport.hosts"),
            std::string::npos);
  EXPECT_EQ(refused(Small().Set("data.source", "iris")),
            "data.source = iris and samples in memory both say what to train on; give one");
  EXPECT_FALSE(fs::exists(At("run")));  // refused before anything is written

  Data data = clouds_.Classes();
  data.train.labels = data.train.labels.first(7);
  EXPECT_EQ(Thrown<UsageError>([&] { Train(Small(), data, {.run = At("run")}); }),
            "there are 120 samples to train, but 7 labels");

  Train(Small(), clouds_.Classes(), {.run = At("run")});
  EXPECT_NE(refused(Small()), "nothing was thrown");  // it is there already
  const TrainOptions resume{.run = At("run"), .resume = true};
  EXPECT_NE(Thrown<UsageError>([&] {
              Train(Recipe::OfRun(At("run")).Set("model.name", "mlp:4-9-3"), clouds_.Classes(),
                    resume);
            }).find("model.name cannot be changed"),
            std::string::npos);
  EXPECT_NE(Thrown<Error>([&] { Train(Recipe::OfRun(At("run")), resume); }).find("memory"),
            std::string::npos);
  EXPECT_NE(Thrown<Error>([&] {
              Data other = clouds_.Classes();
              other.train.values = other.train.values.first(100 * kValues);
              other.train.labels = other.train.labels.first(100);
              Train(Recipe::OfRun(At("run")), other, resume);
            }).find("the data differ"),
            std::string::npos);
  EXPECT_EQ(
      Thrown<UsageError>([&] { Predictor(At("run")).Predict(std::span(clouds_.values).first(7)); }),
      "the samples to predict have 7 values, no multiple of 4 (1x1x4)");
  EXPECT_NE(Thrown<Error>([&] { Predictor(At("none")); }), "nothing was thrown");
  EXPECT_NE(Thrown<Error>([&] { Predictor(At("run"), {.checkpoint = "first"}); }),
            "nothing was thrown");
}

}  // namespace
