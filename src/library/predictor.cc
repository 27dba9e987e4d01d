#include "model/predictor.h"

#include <algorithm>

#include "data/given.h"
#include "data/sources.h"
#include "library/settings.h"
#include "model/saved_model.h"
#include "trainer/data_notes.h"
#include "trainer/job.h"

namespace trireme::v1 {

struct Predictor::Impl {
  Impl(const std::string& run, const PredictorOptions& given)
      : options(given),
        output([this](LogLevel level, std::string_view text) {
          if (options.on_message) options.on_message(SeverityOf(level), text);
        }),
        log(output),
        model(LoadSavedModel(run, log, options.checkpoint)) {
    TrainerOptions& trainer = model.recipe.trainer;
    if (!options.device.empty()) trainer.device = options.device;
    if (options.threads < 0) {
      throw trireme::UsageError("PredictorOptions::threads must be at least 0, got {}",
                                options.threads);
    }
    trainer.threads = options.threads ? IntOrWord(options.threads) : IntOrWord("auto");
    ChooseDeviceHere(trainer, !options.device.empty(), log);
    backend = BackendOf(model.recipe)({.threads = CountThreads(trainer)});
    predictor.emplace(model, *backend.engine);
    const SampleShape& sample = model.card.shape;
    shape = {sample.height, sample.width, sample.channels};
  }

  std::vector<float> Run(const Source& samples) {
    const auto outputs = size_t(model.card.outputs());
    const auto& target = model.card.normalizer.target();
    std::vector<float> found(size_t(samples.size()) * outputs);
    predictor->Run(samples, [&](int64_t index, const Prediction& prediction) {
      float* const at = found.data() + size_t(index) * outputs;
      if (target) {
        *at = float(target->Original(prediction.logits[0]));
      } else {
        std::ranges::copy(prediction.probabilities, at);
      }
    });
    return found;
  }

  std::vector<float> Run(const GivenPart& part) {
    return Run(*OpenGivenValues(model.card.shape, part, "the samples to predict"));
  }

  std::vector<int> Classify(const GivenPart& part) {
    if (model.card.task() != Task::kClassification) {
      throw trireme::UsageError("this model predicts a number, not a class; call Predict");
    }
    const std::vector<float> shares = Run(part);
    const auto outputs = ptrdiff_t(model.card.outputs());
    std::vector<int> best;
    for (auto at = shares.begin(); at != shares.end(); at += outputs) {
      best.push_back(int(std::max_element(at, at + outputs) - at));
    }
    return best;
  }

  const PredictorOptions options;
  LogOutput output;
  const Log log;
  SavedModel model;
  Backend backend;
  std::optional<trireme::Predictor> predictor;
  Shape shape;
};

Predictor::Predictor(const std::string& run, const PredictorOptions& options)
    : impl_(Translated([&] { return std::make_unique<Impl>(run, options); })) {}
Predictor::Predictor(Predictor&& other) noexcept = default;
Predictor& Predictor::operator=(Predictor&& other) noexcept = default;
Predictor::~Predictor() = default;

const Shape& Predictor::shape() const { return impl_->shape; }
const std::vector<std::string>& Predictor::classes() const { return impl_->model.card.classes; }
int Predictor::outputs() const { return impl_->model.card.outputs(); }
std::int64_t Predictor::step() const { return impl_->model.step; }

std::vector<float> Predictor::Predict(std::span<const float> values) {
  return Translated([&] { return impl_->Run({.values = values}); });
}

std::vector<float> Predictor::Predict(std::span<const std::uint8_t> bytes) {
  return Translated([&] { return impl_->Run({.bytes = bytes}); });
}

std::vector<float> Predictor::PredictFile(const std::string& file) {
  return Translated([&] {
    const SavedModel& model = impl_->model;
    const Records records =
        OpenRecords(file, model.card.shape, model.card.known(), model.recipe.data);
    SayNotes(impl_->log, records.notes);
    return impl_->Run(*records.samples);
  });
}

std::vector<int> Predictor::Classify(std::span<const float> values) {
  return Translated([&] { return impl_->Classify({.values = values}); });
}

std::vector<int> Predictor::Classify(std::span<const std::uint8_t> bytes) {
  return Translated([&] { return impl_->Classify({.bytes = bytes}); });
}

}  // namespace trireme::v1
