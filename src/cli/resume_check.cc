#include "cli/resume_check.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/version.h"

namespace trireme {

void CheckResume(const Recipe& before, const Recipe& now) {
  const auto same = [](const char* key, const auto& a, const auto& b) {
    if (a == b) return;
    throw UsageError("--resume: {} cannot be changed; start a new run (--init takes its weights)",
                     key);
  };
  same("model.name", before.model.name, now.model.name);
  same("model.activation", before.model.activation, now.model.activation);
  same("model.norm", before.model.norm, now.model.norm);
  same("model.loss", before.model.loss, now.model.loss);
  same("model.stem", before.model.stem, now.model.stem);
  same("data.source", before.data.source, now.data.source);
  same("data.label", before.data.label, now.data.label);
  same("data.id", before.data.id, now.data.id);
  same("data.test_fraction", before.data.test_fraction, now.data.test_fraction);
  same("data.validation_fraction", before.data.validation_fraction, now.data.validation_fraction);
  same("data.folds", before.data.folds, now.data.folds);
  same("data.fold", before.data.fold, now.data.fold);
  same("data.limit", before.data.limit, now.data.limit);
  same("data.shuffle", before.data.shuffle, now.data.shuffle);
  same("data.normalize", before.data.normalize, now.data.normalize);
  same("data.mean", before.data.mean, now.data.mean);
  same("data.deviation", before.data.deviation, now.data.deviation);
  same("data.size", before.data.size, now.data.size);
  same("data.train_folder", before.data.train_folder, now.data.train_folder);
  same("data.validation_folder", before.data.validation_folder, now.data.validation_folder);
  same("data.test_folder", before.data.test_folder, now.data.test_folder);
  same("data.on_error", before.data.on_error, now.data.on_error);
  same("trainer.seed", before.trainer.seed, now.trainer.seed);
  same("trainer.batch", before.trainer.batch, now.trainer.batch);
  same("trainer.batch_per_worker", before.trainer.batch_per_worker, now.trainer.batch_per_worker);
  if (now.trainer.batch_per_worker) {  // the number of workers decides the batch
    same("transport.ranks (with trainer.batch_per_worker)", before.transport.ranks,
         now.transport.ranks);
  }
  same("strategy.name", before.strategy.name, now.strategy.name);
  same("optimizer.name", before.optimizer.name, now.optimizer.name);
}

std::string OtherBuildText(const Json& last_start) {
  if (last_start.IsNull()) return "";
  const auto word = [&](const char* key) {
    const Json* found = last_start.Find(key);
    return found && found->IsString() ? found->AsString() : std::string("unknown");
  };
  const std::string before = BuildText(word("version"), word("commit"));
  if (before == BuildText()) return "";
  return fmt::format("this run was trained by trireme {} so far; {} goes on with it", before,
                     BuildText());
}

}  // namespace trireme
