#include "record/metrics.h"

#include <algorithm>

namespace trireme {
namespace {

void AddIfKnown(Json& object, const char* key, const std::optional<double>& value) {
  if (value) object.AddNew(key, *value);
}

void AddScale(Json& object, const std::optional<double>& scale,
              const std::optional<int64_t>& skipped) {
  AddIfKnown(object, "loss_scale", scale);
  if (skipped) object.AddNew("skipped_steps", *skipped);
}

Json OrNull(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

// One number of each class.
template <class T>
Json ListOf(const std::vector<T>& classes, std::optional<double> T::*number) {
  Json list = Json::Array();
  for (const T& one : classes) list.Append(OrNull(one.*number));
  return list;
}

Json ToJson(const LoaderRecord& record) {
  Json json = Json::Object();
  json.AddNew("threads", record.threads).AddNew("read", record.read);
  json.AddNew("decode", record.decode).AddNew("resize", record.resize).AddNew("cpu", record.cpu);
  json.AddNew("depth", record.MeanDepth()).AddNew("depth_at_take", record.DepthAtTake());
  if (record.full > 0) json.AddNew("queue_full", record.full);
  return json;
}

Json ToJson(const RankRecord& record) {
  Json json = Json::Object();
  const StepTimes& times = record.times;
  json.AddNew("rank", record.rank).AddNew("data", times.data).AddNew("forward", times.forward);
  json.AddNew("backward", times.backward).AddNew("communication_hidden", times.hidden);
  json.AddNew("communication_waited", times.communication).AddNew("update", times.update);
  json.AddNew("bytes_sent", record.bytes_sent).AddNew("bytes_received", record.bytes_received);
  if (record.loader.requests) json.AddNew("loader", ToJson(record.loader));
  return json;
}

Json ToJson(const ClientRecord& record) {
  Json json = Json::Object();
  json.AddNew("name", record.name).AddNew("here", record.here);
  json.AddNew("updates", record.updates).AddNew("samples", record.samples);
  json.AddNew("refused", record.refused).AddNew("removed", record.removed);
  json.AddNew("waited_seconds", record.waited_seconds);
  if (record.overflows) json.AddNew("overflows", record.overflows);
  json.AddNew("staleness_mean", record.staleness_mean);
  json.AddNew("staleness_max", record.staleness_max).AddNew("staleness", record.staleness);
  return json;
}

Json ToJson(const std::vector<ClientRecord>& records) {
  Json json = Json::Array();
  for (const ClientRecord& record : records) json.Append(ToJson(record));
  return json;
}

}  // namespace

NumberRecord RecordOf(const ErrorSums& errors) {
  return {errors.R2(), errors.Rmse(), errors.Mae()};
}

void AddNumbers(Json& json, const std::string& part, const NumberRecord& numbers) {
  json.AddNew(part + "_r2", OrNull(numbers.r2)).AddNew(part + "_rmse", numbers.rmse);
  json.AddNew(part + "_mae", numbers.mae);
}

LoaderRecord LoaderRecord::Since(const LoaderRecord& before) const {
  return {.threads = threads,
          .requests = requests - before.requests,
          .read = read - before.read,
          .decode = decode - before.decode,
          .resize = resize - before.resize,
          .cpu = cpu - before.cpu,
          .seconds = seconds - before.seconds,
          .ready_at_take = ready_at_take - before.ready_at_take,
          .ready_s = ready_s - before.ready_s,
          .full = full - before.full};
}

StepTimes StepTimes::Within(double seconds) const {
  const double total = Total();
  if (total <= seconds) return *this;
  StepTimes fitting = *this;
  for (double StepTimes::*part : {&StepTimes::data, &StepTimes::forward, &StepTimes::backward,
                                  &StepTimes::communication, &StepTimes::update}) {
    fitting.*part *= seconds / total;
  }
  return fitting;
}

RankRecord RankRecord::Since(const RankRecord& before) const {
  const StepTimes& then = before.times;
  return {rank,
          {.data = times.data - then.data,
           .forward = times.forward - then.forward,
           .backward = times.backward - then.backward,
           .communication = times.communication - then.communication,
           .update = times.update - then.update,
           .hidden = std::max(0.0, times.hidden - then.hidden)},
          bytes_sent - before.bytes_sent,
          bytes_received - before.bytes_received,
          loader.Since(before.loader)};
}

Json ToJson(const StepTimes& times) {
  Json json = Json::Object();
  json.AddNew("data", times.data).AddNew("forward", times.forward);
  json.AddNew("backward", times.backward).AddNew("communication", times.communication);
  json.AddNew("update", times.update);
  return json;
}

Json ToJson(const InputRecord& record) {
  Json json = Json::Object();
  json.AddNew("share", record.share).AddNew("stage", record.stage);
  json.AddNew("step_seconds", record.step_seconds);
  json.AddNew("step_seconds_without", record.step_seconds_without);
  json.AddNew("threads", record.threads);
  json.AddNew("step_seconds_threads", record.step_seconds_threads);
  json.AddNew("text", record.text);
  return json;
}

Json ToJson(const EpochRecord& record) {
  Json json = Json::Object();
  const auto whole = int64_t(record.epoch);
  json.AddNew("event", "epoch");
  json.AddNew("epoch", double(whole) == record.epoch ? Json(whole) : Json(record.epoch));
  json.AddNew("step", record.step);
  AddIfKnown(json, "train_loss", record.train_loss);
  AddIfKnown(json, "train_accuracy", record.train_accuracy);
  AddIfKnown(json, "test_loss", record.test_loss);
  AddIfKnown(json, "test_accuracy", record.test_accuracy);
  AddIfKnown(json, "test_top5", record.test_top5);
  AddIfKnown(json, "validation_loss", record.validation_loss);
  AddIfKnown(json, "validation_accuracy", record.validation_accuracy);
  if (record.test_numbers) AddNumbers(json, "test", *record.test_numbers);
  if (record.validation_numbers) AddNumbers(json, "validation", *record.validation_numbers);
  json.AddNew("lr", record.lr);
  AddScale(json, record.loss_scale, record.skipped_steps);
  json.AddNew("samples_per_second", record.samples_per_second);
  json.AddNew("seconds", record.seconds);
  json.AddNew("samples", record.samples).AddNew("time", record.time);
  AddIfKnown(json, "evaluation_seconds", record.evaluation_seconds);
  if (record.evaluations) json.AddNew("evaluations", record.evaluations);
  json.AddNew("times", ToJson(record.times));
  json.AddNew("bytes_sent", record.bytes_sent).AddNew("bytes_received", record.bytes_received);
  if (!record.ranks.empty()) {
    Json ranks = Json::Array();
    for (const RankRecord& rank : record.ranks) ranks.Append(ToJson(rank));
    json.AddNew("ranks", std::move(ranks));
  }
  if (!record.shards.empty()) {
    Json shards = Json::Array();
    for (const int count : record.shards) shards.Append(count);
    json.AddNew("shards", std::move(shards));
  }
  if (!record.clients.empty()) json.AddNew("clients", ToJson(record.clients));
  if (!record.late.empty()) json.AddNew("late", record.late);
  if (record.loader.requests) json.AddNew("loader", ToJson(record.loader));
  if (record.input_bound) json.AddNew("input_bound", ToJson(*record.input_bound));
  return json;
}

Json ToJson(const StepRecord& record) {
  Json json = Json::Object();
  json.AddNew("event", "step").AddNew("epoch", record.epoch).AddNew("step", record.step);
  json.AddNew("train_loss", record.train_loss).AddNew("lr", record.lr);
  json.AddNew("samples_per_second", record.samples_per_second);
  json.AddNew("seconds", record.seconds);
  json.AddNew("samples", record.samples).AddNew("time", record.time);
  json.AddNew("times", ToJson(record.times));
  json.AddNew("bytes_sent", record.bytes_sent).AddNew("bytes_received", record.bytes_received);
  if (record.loader.requests) json.AddNew("loader", ToJson(record.loader));
  return json;
}

Json ToJson(const Summary& summary) {
  Json json = Json::Object();
  json.AddNew("test_accuracy", OrNull(summary.test_accuracy));
  json.AddNew("test_top5", OrNull(summary.test_top5));
  json.AddNew("test_loss", OrNull(summary.test_loss));
  json.AddNew("train_loss", OrNull(summary.train_loss));
  if (summary.test_numbers) AddNumbers(json, "test", *summary.test_numbers);
  AddIfKnown(json, "validation_accuracy", summary.validation_accuracy);
  if (summary.validation_numbers) AddNumbers(json, "validation", *summary.validation_numbers);
  AddIfKnown(json, "validation_loss", summary.validation_loss);
  json.AddNew("best_accuracy", OrNull(summary.best_accuracy));
  AddIfKnown(json, "best_rmse", summary.best_rmse);
  json.AddNew("best_epoch", summary.best_epoch ? Json(*summary.best_epoch) : Json());
  json.AddNew("end_reason", summary.end_reason);
  json.AddNew("started_at", summary.started_at).AddNew("ended_at", summary.ended_at);
  json.AddNew("host", summary.host);
  json.AddNew("samples_per_second", summary.samples_per_second);
  json.AddNew("seconds", summary.seconds).AddNew("train_seconds", summary.train_seconds);
  json.AddNew("epochs", summary.epochs)
      .AddNew("steps", summary.steps)
      .AddNew("peak_memory_bytes", summary.peak_memory_bytes);
  json.AddNew("ranks", summary.ranks).AddNew("strategy", summary.strategy);
  json.AddNew("transport", summary.transport).AddNew("device", summary.device);
  if (!summary.device_name.empty()) {
    json.AddNew("device_name", summary.device_name);
    json.AddNew("device_memory_bytes", summary.device_memory_bytes);
  }
  json.AddNew("precision", summary.precision);
  AddScale(json, summary.loss_scale, summary.skipped_steps);
  json.AddNew("machine", summary.machine);
  json.AddNew("version", summary.version).AddNew("commit", summary.commit);
  json.AddNew("parameters_sha256", summary.parameters_sha256);
  json.AddNew("classes", summary.classes);
  if (!summary.test_numbers) AddClasses(json, summary.confusion, summary.roc);
  const ClientsRecord& clients = summary.clients;
  if (clients.all.updates) {
    json.AddNew("updates", clients.all.updates);
    json.AddNew("staleness_mean", clients.all.staleness_mean);
    json.AddNew("staleness_max", clients.all.staleness_max);
    json.AddNew("staleness", clients.all.staleness);
  }
  if (!clients.clients.empty()) {
    json.AddNew("samples", clients.all.samples);
    json.AddNew("waited_seconds", clients.all.waited_seconds);
    json.AddNew("clients", ToJson(clients.clients));
  }
  json.AddNew("loader_threads", summary.loader_threads);
  if (summary.left_out) json.AddNew("left_out", *summary.left_out);
  if (summary.input_bound) json.AddNew("input_bound", ToJson(*summary.input_bound));
  if (!summary.emulated.empty()) {
    Json emulated = Json::Object();
    for (const auto& [key, value] : summary.emulated) emulated.AddNew(key, value);
    json.AddNew("emulated", std::move(emulated));
  }
  return json;
}

void AddClasses(Json& json, const Confusion& confusion, const RocCurves& roc) {
  const std::vector<ClassScore> scores = ScoresOf(confusion);
  const MacroScore macro = MacroOf(scores);
  json.AddNew("macro_precision", OrNull(macro.precision));
  json.AddNew("macro_recall", OrNull(macro.recall)).AddNew("macro_f1", OrNull(macro.f1));
  json.AddNew("macro_auc", OrNull(roc.MacroAuc())).AddNew("auc_error", roc.AucError());
  json.AddNew("per_class_accuracy", ListOf(scores, &ClassScore::recall));
  json.AddNew("per_class_precision", ListOf(scores, &ClassScore::precision));
  json.AddNew("per_class_recall", ListOf(scores, &ClassScore::recall));
  json.AddNew("per_class_f1", ListOf(scores, &ClassScore::f1));
  json.AddNew("per_class_auc", ListOf(roc.classes, &Roc::auc));
  json.AddNew("confusion", confusion);
  Json curves = Json::Array();
  for (const Roc& one : roc.classes) {
    Json curve = Json::Object();
    curve.AddNew("false_positive_rate", one.false_positive_rate);
    curve.AddNew("true_positive_rate", one.true_positive_rate);
    curves.Append(std::move(curve));
  }
  Json all = Json::Object();
  all.AddNew("bins", roc.bins).AddNew("curves", std::move(curves));
  json.AddNew("roc", std::move(all));
}

}  // namespace trireme
