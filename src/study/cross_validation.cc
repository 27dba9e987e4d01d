#include "study/cross_validation.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"
#include "base/version.h"
#include "data/sources.h"
#include "flat/staging.h"
#include "model/saved_model.h"
#include "record/metrics.h"
#include "record/progress_text.h"
#include "record/run_lock.h"
#include "study/child.h"
#include "study/run_queue.h"
#include "study/slot_share.h"
#include "study/statistics.h"
#include "trainer/job.h"

namespace trireme {
namespace {

std::string RecipeFile(const FoldsPlan& plan) { return plan.out + "/recipe.toml"; }

void AdoptRecipe(const FoldsPlan& plan) {
  const std::string now = ConfigText(plan.recipe);
  if (!Exists(RecipeFile(plan))) return ReplaceFile(RecipeFile(plan), now);
  const auto before = Split(ReadFile(RecipeFile(plan)), '\n'), after = Split(now, '\n');
  for (size_t i = 0; i < std::max(before.size(), after.size()); ++i) {
    const std::string a = i < before.size() ? before[i] : "", b = i < after.size() ? after[i] : "";
    if (a == b) continue;
    throw UsageError("{} holds another cross-validation: it has {}, not {}; use another --out",
                     plan.out, a.empty() ? "nothing more" : a, b.empty() ? "nothing more" : b);
  }
}

// The summary of a fold that is done.
std::optional<Json> ReadDone(const std::string& folder) {
  const std::string path = folder + "/summary.json";
  if (!Exists(path)) return {};
  try {
    Json summary = ParseJson(ReadFile(path), path);
    summary.At("test_accuracy");
    return summary;
  } catch (const Error&) {  // damaged: not done
    return {};
  }
}

// Goes on with what is there, if it came so far as to be a run.
std::vector<std::string> WordsFor(const FoldsPlan& plan, int fold) {
  const std::string folder = plan.Folder(fold);
  std::vector<std::string> words;
  if (Exists(folder + "/config.toml")) {
    AwaitFree(folder);
    words = {"train", "--resume", folder, "--quiet"};
  } else {
    ClearRun(folder);
    words = {"train",   RecipeFile(plan), "--set", fmt::format("data.fold={}", fold + 1),
             "--quiet", "--out",          folder};
  }
  return words;
}

std::string TrainFold(const FoldsPlan& plan, const FoldsContext& context, int fold, int slot,
                      int slots) {
  const SlotShare share(plan.recipe, slot, slots);
  const std::string log = plan.Folder(fold) + ".log";
  std::vector<std::string> words = WordsFor(plan, fold);
  words.insert(words.end(), share.words().begin(), share.words().end());
  const int code = context.train(words, log);
  if (context.stopped()) return "";
  if (code != 0) throw Error("fold {}: {}", fold + 1, ChildError(log, code));
  const auto summary = ReadDone(plan.Folder(fold));
  if (!summary) throw Error("fold {} succeeded but left no summary.json", fold + 1);
  const Json& accuracy = summary->At("test_accuracy");
  if (!accuracy.IsNull()) {
    return fmt::format("fold {}: test accuracy {:.2f} %", fold + 1, 100 * accuracy.AsDouble());
  }
  return fmt::format("fold {}: test {}", fold + 1, RmseText(summary->At("test_rmse").AsDouble()));
}

// One fold's model on its fold.
void AddFold(const SavedModel& model, FoldsResult& result, RocTally& tally) {
  const TrainerOptions& trainer = model.recipe.trainer;
  const DataSet data = OpenData(model.recipe.data, trainer.seed, model.card.known());
  const Backend backend = BackendOf(model.recipe)({.threads = CountThreads(trainer)});
  const auto queue = backend.engine->device().NewQueue();
  const Buffer state(backend.engine->device(), model.layout.state);
  flat::PutNow(*queue, model.state, state);
  Evaluator evaluator(model.graph, *backend.engine, *queue, *data.test, model.card.normalizer,
                      EvaluationThreads(model.recipe, *data.test));
  const Evaluation one = evaluator.Run(state);
  queue->Sync();
  if (!one.errors) tally.Add(evaluator.tally());
  Evaluation& all = result.pooled;  // sums until all are there
  const double samples = double(one.samples);
  all.samples += one.samples;
  all.loss += one.loss * samples;
  all.top5 += one.top5 * samples;
  if (one.errors) {
    if (!all.errors) all.errors.emplace();
    all.errors->Add(*one.errors);
  }
  for (size_t r = 0; r < one.confusion.size(); ++r) {
    for (size_t c = 0; c < one.confusion.size(); ++c) {
      all.confusion[r][c] += one.confusion[r][c];
    }
  }
}

int64_t SamplesOf(const Json& summary) {
  int64_t samples = 0;
  const Json* confusion = summary.Find("confusion");
  if (!confusion) return 0;  // numbers
  for (const Json& row : confusion->Items()) {
    for (const Json& count : row.Items()) samples += count.AsInt();
  }
  return samples;
}

constexpr FoldNumber kNumbers[] = {
    {"test_accuracy", "test accuracy", true},
    {"test_rmse", "test RMSE", false},
    {"test_mae", "test MAE", false},
    {"test_r2", "test R2", false},
    {"test_top5", "top 5", true},
    {"test_loss", "test loss", false},
    {"train_loss", "training loss", false},
    {"macro_f1", "F1", true},
    {"macro_auc", "AUC", false},
};

}  // namespace

std::span<const FoldNumber> FoldNumbers() { return kNumbers; }

void CheckFolds(const FoldsPlan& plan) {
  if (plan.folds() < 2) throw UsageError("--folds must be at least 2, got {}", plan.folds());
  if (plan.parallel < 1) throw UsageError("--parallel must be at least 1, got {}", plan.parallel);
  if (!plan.recipe.record.trace.empty() || !plan.recipe.data.ledger.empty()) {
    throw UsageError(
        "--folds cannot be used with record.trace or data.ledger: all folds would write "
        "to the same place; unset them");
  }
  OpenData(plan.recipe.data, plan.recipe.trainer.seed);  // there are enough samples
}

int TrainFolds(const FoldsPlan& plan, const FoldsContext& context) {
  MakeDirectories(plan.out);
  const RunLock lock(plan.out);
  AdoptRecipe(plan);
  return RunQueued(
      {.count = size_t(plan.folds()),
       .done = [&](size_t fold) { return ReadDone(plan.Folder(int(fold))).has_value(); },
       .run = [&](size_t fold, int slot,
                  int slots) { return TrainFold(plan, context, int(fold), slot, slots); },
       .kind = [](size_t) { return size_t{0}; },
       .stopped = context.stopped,
       .say = context.say,
       .parallel = plan.parallel});
}

std::optional<std::vector<double>> FoldsResult::Numbers(const char* name) const {
  std::vector<double> numbers;
  for (const Json& summary : summaries) {
    const Json* number = summary.Find(name);
    if (!number || number->IsNull()) return {};
    numbers.push_back(number->AsDouble());
  }
  return numbers;
}

FoldsResult ReadFolds(const FoldsPlan& plan, const Log& log) {
  FoldsResult result;
  int64_t samples = 0;
  for (int fold = 0; fold < plan.folds(); ++fold) {
    auto summary = ReadDone(plan.Folder(fold));
    if (!summary) throw Error("{} is not done", plan.Folder(fold));
    samples += SamplesOf(*summary);
    result.summaries.push_back(std::move(*summary));
  }
  std::optional<RocTally> tally;
  for (int fold = 0; fold < plan.folds(); ++fold) {
    SavedModel model = LoadSavedModel(plan.Folder(fold), log);
    ChooseDeviceHere(model.recipe.trainer, false, log);
    const size_t classes = model.card.classes.size();
    if (!tally) {
      result.classes = model.card.classes;
      result.pooled.confusion.assign(classes, std::vector<int64_t>(classes));
      tally.emplace(std::max(1, int(classes)), samples);
    }
    if (model.card.classes != result.classes) {
      throw Error("the classes of {} differ from those of {}", plan.Folder(fold), plan.Folder(0));
    }
    AddFold(model, result, *tally);
  }
  Evaluation& pooled = result.pooled;
  int64_t correct = 0;
  for (size_t c = 0; c < pooled.confusion.size(); ++c) correct += pooled.confusion[c][c];
  pooled.accuracy = double(correct) / double(pooled.samples);
  pooled.loss /= double(pooled.samples);
  pooled.top5 /= double(pooled.samples);
  if (!pooled.errors) result.roc = tally->Result(nullptr);
  return result;
}

Json FoldsJson(const FoldsPlan& plan, const FoldsResult& result) {
  Json mean = Json::Object(), deviation = Json::Object(), runs = Json::Array();
  for (const FoldNumber& number : kNumbers) {
    if (!result.summaries[0].Find(number.name)) continue;  // not of this task
    const auto values = result.Numbers(number.name);
    const Moments moments = values ? MomentsOf(*values) : Moments{};
    mean.Add(number.name, values ? Json(moments.mean) : Json());
    deviation.Add(number.name, values ? Json(moments.deviation) : Json());
  }
  for (int fold = 0; fold < plan.folds(); ++fold) {
    const Json& summary = result.summaries[size_t(fold)];
    Json run = Json::Object();
    run.Add("fold", fold + 1).Add("run", fmt::format("fold-{}", fold + 1));
    for (const FoldNumber& number : kNumbers) {
      if (!result.summaries[0].Find(number.name)) continue;
      const Json* value = summary.Find(number.name);
      run.Add(number.name, value ? *value : Json());
    }
    for (const char* name : {"epochs", "steps", "seconds", "parameters_sha256"}) {
      run.Add(name, summary.At(name));
    }
    runs.Append(std::move(run));
  }
  Json json = Json::Object();
  json.Add("folds", plan.folds()).Add("samples", result.pooled.samples);
  json.Add("mean", std::move(mean)).Add("deviation", std::move(deviation));
  const Evaluation& pooled = result.pooled;
  json.Add("test_accuracy", pooled.errors ? Json() : Json(pooled.accuracy));
  json.Add("test_top5", pooled.errors ? Json() : Json(pooled.top5));
  if (pooled.errors) AddNumbers(json, "test", RecordOf(*pooled.errors));
  json.Add("test_loss", result.pooled.loss).Add("version", Version());
  json.Add("runs", std::move(runs)).Add("classes", result.classes);
  if (!pooled.errors) AddClasses(json, pooled.confusion, result.roc);
  return json;
}

}  // namespace trireme
