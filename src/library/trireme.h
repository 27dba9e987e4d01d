// Trireme inside another program: train with a function that is called after every epoch, on
// samples of a file or of memory, and predict. docs/library.md explains it; docs/keys.md lists the
// keys.
//
// A process is the caller's: the library installs no signal handler, writes to no terminal, never
// ends the process and reads no command line. Errors are exceptions: Error, and UsageError below
// it. What it writes is the directory of the run. Several threads may train and predict at the same
// time, each with objects of its own.
//
// Within a major version what compiles with this header stays good.
#pragma once
#if __cplusplus < 202002L
#error "trireme/trireme.h needs C++20; compile with -std=c++20"
#endif

#include <charconv>
#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace trireme {
#ifndef TRIREME_BUILDS_LIBRARY  // there the names are those of its own classes
inline
#endif
    namespace v1 {

// Of the library that is linked: 0.2.0, or 0.2.0-14-g9000c29 after a tag.
std::string Version();

// What went wrong, in a sentence: who, what, the values, which key to set.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The call is wrong: a key, a value, samples that contradict each other.
class UsageError : public Error {
 public:
  using Error::Error;
};

// What a run should do: the keys of a recipe, as in a TOML file or on the command line of
// `trireme train`. A value: copies are independent.
class Recipe {
 public:
  // No recipe: model, learning rate and normalisation are chosen for the data, unless they are set.
  Recipe();
  // A TOML file, or a built-in recipe by its name: "fashion-cnn".
  static Recipe Load(const std::string& file_or_name);
  // What a run was made with: to resume it.
  static Recipe OfRun(const std::string& run);

  Recipe(const Recipe& other);
  Recipe(Recipe&& other) noexcept;
  Recipe& operator=(const Recipe& other);
  Recipe& operator=(Recipe&& other) noexcept;
  ~Recipe();

  // Set("optimizer.name", "adam").Set("trainer.epochs", 20): wins over what was loaded and what was
  // set before. Throws UsageError at once if there is no such key, or it does not take the value.
  Recipe& Set(const std::string& key, const std::string& value);
  Recipe& Set(const std::string& key, const char* value) { return Set(key, std::string(value)); }
  template <class T>
  requires std::is_arithmetic_v<T> Recipe& Set(const std::string& key, T value) {
    if constexpr (std::same_as<T, bool>) {
      return Set(key, std::string(value ? "true" : "false"));
    } else {
      char text[64];
      const std::to_chars_result end = std::to_chars(text, text + sizeof(text), value);
      return Set(key, std::string(text, end.ptr));
    }
  }

  // All keys, as a file that Load reads.
  std::string Toml() const;

 private:
  friend struct Settings;  // the library's own
  struct Impl;
  explicit Recipe(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// A sample is height x width x channels values, in this order; a row of a table is 1 x 1 x columns.
struct Shape {
  int height = 1;
  int width = 1;
  int channels = 1;

  std::int64_t size() const { return std::int64_t{height} * width * channels; }
  bool operator==(const Shape&) const = default;
};

// Samples in the caller's memory, which stays as it is until the call that gets them returns. They
// are not copied (labels are), and all ranks read the same ones.
struct Samples {
  std::span<const float> values = {};         // of one sample after the other
  std::span<const std::uint8_t> bytes = {};   // or these: pixels, which count as value / 255
  std::span<const std::int32_t> labels = {};  // the class of each sample, from 0
  std::span<const float> numbers = {};        // or the number to predict of each
};

struct Data {
  Shape shape;
  Samples train;
  // May be empty: then keys of the section [data] say what of `train` is held out.
  Samples validation = {};
  Samples test = {};
  std::vector<std::string> classes = {};  // their names; empty: 0, 1, ...
};

// What was measured at the end of an epoch. Fractions are 0 to 1, errors (RMSE) in the unit of the
// numbers; what was not measured has no value.
struct Epoch {
  double epoch = 0;         // finished so far; 2.4: the run ended within its third
  std::int64_t epochs = 0;  // that the run will have
  std::int64_t step = 0;    // steps finished so far
  std::optional<double> train_loss, train_accuracy;
  std::optional<double> validation_loss, validation_accuracy, validation_rmse;
  std::optional<double> test_loss, test_accuracy, test_rmse;
  double learning_rate = 0;
  double samples_per_second = 0;
  double seconds = 0;  // of training in this epoch, without its evaluation
};

enum class Severity { kInfo, kWarning };

struct TrainOptions {
  // The directory of the run: metrics, checkpoints, summary (docs/runs.md). A new one must not
  // exist yet; one that is resumed must.
  std::string run;
  // Go on from the newest checkpoint in `run`, with a recipe that is Recipe::OfRun(run), perhaps
  // with other values of keys that may change: more epochs, another number of ranks. A run without
  // a checkpoint begins again.
  bool resume = false;
  // Called after every epoch, by a thread of the run, never by two at once. Returning false stops
  // the run. Training waits for it, except with strategies that have a server.
  std::function<bool(const Epoch&)> on_epoch = {};
  // What `trireme train` would log, a line each; never by two threads at once.
  std::function<void(Severity, std::string_view)> on_message = {};
  // Any thread may ask the run to stop: it does so after the present step.
  std::stop_token stop = {};
};

enum class End {
  kDone,       // all epochs
  kTarget,     // trainer.target_accuracy is reached
  kPatience,   // trainer.patience has run out; the run keeps its best epoch
  kConverged,  // no step lowers the loss any more (lbfgs)
  kStopped,    // by on_epoch or `stop`; the run can be resumed
};

struct Result {
  End end = End::kDone;
  std::string run;
  double epochs = 0;       // finished, over all lives of the run
  std::int64_t steps = 0;  // likewise; after kStopped: of its checkpoint
  // Of the weights that the run leaves; after kStopped those of the last epoch that ended.
  std::optional<double> train_loss;
  std::optional<double> validation_loss, validation_accuracy, validation_rmse;
  std::optional<double> test_loss, test_accuracy, test_rmse;
  double train_seconds = 0;       // without evaluation and checkpoints; 0 after kStopped
  std::string parameters_sha256;  // of the weights; empty after kStopped
};

// Trains, and returns when the run is over. It leaves a checkpoint, also when it was stopped. Where
// one of the callbacks throws, the run is stopped in the same way, and then Train throws that
// exception. Ranks (transport.ranks) are threads of this process; transports that start processes
// are refused.
Result Train(const Recipe& recipe, const TrainOptions& options);
// The same with samples in memory instead of those of data.source.
Result Train(const Recipe& recipe, const Data& data, const TrainOptions& options);

struct PredictorOptions {
  std::string checkpoint = "last";  // or "best", or the number of a step
  std::string device = {};  // as trainer.device; empty: the run's, or the CPU if it is not here
  int threads = 0;          // that compute; 0: as many as trainer.threads = auto means
  std::function<void(Severity, std::string_view)> on_message = {};
};

// A trained model. One thread at a time.
class Predictor {
 public:
  explicit Predictor(const std::string& run, const PredictorOptions& options = {});
  Predictor(Predictor&& other) noexcept;
  Predictor& operator=(Predictor&& other) noexcept;
  ~Predictor();

  const Shape& shape() const;                       // of a sample
  const std::vector<std::string>& classes() const;  // none if it predicts a number
  int outputs() const;                              // classes, or 1
  std::int64_t step() const;                        // of the checkpoint

  // For each sample the probability of every class (the outputs themselves where the loss has no
  // softmax), or the number: outputs() values for each. Values are those that training saw, before
  // its normalisation.
  std::vector<float> Predict(std::span<const float> values);
  std::vector<float> Predict(std::span<const std::uint8_t> bytes);
  // For all records of a file: csv:FILE, idx:FILE, cifar10:FILE, image:FILE, or a FILE that shows
  // its format.
  std::vector<float> PredictFile(const std::string& file);

  // The most probable class of each sample; UsageError if the model predicts a number.
  std::vector<int> Classify(std::span<const float> values);
  std::vector<int> Classify(std::span<const std::uint8_t> bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v1
}  // namespace trireme
