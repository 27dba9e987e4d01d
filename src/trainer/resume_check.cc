#include "trainer/resume_check.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/version.h"

namespace trireme {

void CheckResume(Recipe before, Recipe now) {
  Sections old, wanted;
  Bind(old, before);
  Bind(wanted, now);
  const auto check = [&](const std::string& path, std::string_view why = "") {
    if (old.At(path).Toml() == wanted.At(path).Toml()) return;
    throw UsageError("--resume: {}{} cannot be changed; start a new run (--init takes its weights)",
                     path, why);
  };
  for (const std::string& path : old.Paths()) {
    if (Includes(old.At(path).binds(), Binds::kResume)) check(path);
  }
  // Layers of dropout are there or not; what they drop is free.
  if ((before.model.dropout > 0) != (now.model.dropout > 0)) {
    check("model.dropout", " (from or to 0)");
  }
  // The number of workers decides the batch.
  if (now.trainer.batch_per_worker) check("transport.ranks", " (with trainer.batch_per_worker)");
}

std::string OtherBuildText(const Json& last_start) {
  if (last_start.IsNull()) return "";
  const auto word = [&](const char* key) {
    const Json* found = last_start.Find(key);
    return found && found->IsString() ? found->AsString() : std::string("unknown");
  };
  const std::string before = BuildText(word("version"), word("commit"));
  if (before == BuildText()) return "";
  return fmt::format("this run was trained with trireme {} so far; {} continues it", before,
                     BuildText());
}

}  // namespace trireme
