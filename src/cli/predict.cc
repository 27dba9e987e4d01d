// What a trained model says of records.
#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "cli/command.h"
#include "data/joined_source.h"
#include "data/sources.h"
#include "record/json.h"
#include "trainer/job.h"
#include "trainer/predictor.h"
#include "trainer/saved_model.h"

namespace trireme {
namespace {

constexpr size_t kTogether = 256;  // pictures

constexpr Flag kFlags[] = {
    {"--top", "K", "classes to show of each record; 3 without"},
    {"--logits", "", "raw outputs as JSON, one object per record"},
    {"--json", "", "classes and probabilities as JSON, one object per record"},
    {"--threads", "N", "threads that compute, or auto", "trainer.threads"},
    {"--device", "NAME", "cpu or ref", "trainer.device"},
};
constexpr Place kPlaces[] = {
    {"RUN", Place::kRequired, "a run's directory"},
    {"FILE", Place::kMany,
     "records: csv, idx pictures or CIFAR-10 (csv:FILE, idx:FILE, cifar10:FILE), or a JPEG or PNG "
     "picture (image:FILE)"}};

std::vector<int> Best(std::span<const float> shares, size_t count) {
  std::vector<int> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return shares[a] > shares[b]; });
  order.resize(std::min(count, order.size()));
  return order;
}

std::vector<double> Doubles(std::span<const float> values) {
  return {values.begin(), values.end()};
}

class Printer {
 public:
  Printer(const Args& args, const std::vector<std::string>& classes, Output& out)
      : classes_(classes),
        out_(out),
        top_(args.Number<int>("--top", 3)),
        logits_(args.Has("--logits")),
        json_(args.Has("--json")) {
    if (top_ < 1) throw UsageError("--top must be at least 1, got {}", top_);
  }

  void Print(const std::string& file, int64_t index, const Prediction& prediction) {
    const std::vector<int> best = Best(prediction.probabilities, size_t(top_));
    if (!logits_ && !json_) {
      std::string line = fmt::format("{} {}", file, index);
      for (const int i : best) {
        line += fmt::format("  {} {:.2f} %", classes_[i], 100 * prediction.probabilities[i]);
      }
      return out_.Write(line + "\n");
    }
    Json json = Json::Object();
    json.Add("file", file).Add("record", index).Add("class", classes_[best[0]]);
    if (logits_) json.Add("logits", Doubles(prediction.logits));
    if (json_) json.Add("probabilities", Doubles(prediction.probabilities));
    out_.Write(json.Text() + "\n");
  }

 private:
  const std::vector<std::string>& classes_;
  Output& out_;
  int top_;
  bool logits_, json_;
};

int Run(const Args& args, Process& process) {
  SavedModel model = LoadSavedModel(args.Required("RUN"), Log(process.log));
  Sections sections;
  Bind(sections, model.recipe);
  args.ApplyTo(sections);
  const std::vector<std::string> files = args.Many("FILE");
  if (files.empty()) throw UsageError("no FILE was given");
  const Rig rig =
      RigFor(model.recipe.trainer, model.recipe.engine)(CountThreads(model.recipe.trainer));
  Predictor predictor(model, *rig.engine);
  Printer printer(args, model.card.classes, process.out);
  std::vector<std::string> names;  // of pictures that are shown to the model together
  std::vector<std::unique_ptr<Source>> pictures;
  const auto flush = [&] {
    if (pictures.empty()) return;
    const JoinedSource joined(std::exchange(pictures, {}));
    predictor.Run(joined, [&](int64_t index, const Prediction& prediction) {
      printer.Print(names[size_t(index)], 0, prediction);
    });
    names.clear();
  };
  for (const std::string& file : files) {
    Records records;
    try {
      records = OpenRecords(file, model.card.shape, model.card.classes, model.recipe.data);
    } catch (const Error&) {
      flush();  // what was asked before it
      throw;
    }
    if (records.samples->cuts()) {
      names.push_back(file);
      pictures.push_back(std::move(records.samples));
      if (pictures.size() == kTogether) flush();
      continue;
    }
    flush();
    predictor.Run(*records.samples, [&](int64_t index, const Prediction& prediction) {
      printer.Print(file, index, prediction);
    });
  }
  flush();
  return 0;
}

}  // namespace

extern const Command kPredict;
const Command kPredict = {
    .name = "predict",
    .summary = "print what a trained model says of records",
    .usage = "trireme predict RUN FILE... [--top K] [--logits] [--json]",
    .examples =
        "trireme predict runs/iris flowers.csv\n"
        "trireme predict runs/a t10k-images-idx3-ubyte.gz --top 1\n"
        "trireme predict runs/a cifar10:test_batch.bin --logits\n"
        "trireme predict runs/scenes *.jpg            # the top classes of each picture\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
