#include "cli/open_model.h"

#include "trainer/job.h"

namespace trireme {

OpenedModel OpenModel(const Args& args, const Log& log) {
  SavedModel model =
      LoadSavedModel(args.Required("RUN"), log, args.Value("--checkpoint").value_or("last"));
  Sections sections;
  Bind(sections, model.recipe);
  args.ApplyTo(sections);
  Backend backend = BackendOf(model.recipe)(CountThreads(model.recipe.trainer));
  return {std::move(model), std::move(backend)};
}

}  // namespace trireme
