#include "cli/open_model.h"

#include "trainer/job.h"

namespace trireme {

OpenedModel OpenModel(const Args& args, const Log& log) {
  SavedModel model =
      LoadSavedModel(args.Required("RUN"), log, args.Value("--checkpoint").value_or("last"));
  Sections sections;
  Bind(sections, model.recipe);
  args.ApplyTo(sections);
  TrainerOptions& trainer = model.recipe.trainer;
  ChooseDeviceHere(trainer, sections.ByHand("trainer.device"), log);
  Backend backend = BackendOf(model.recipe)({.threads = CountThreads(trainer)});
  return {std::move(model), std::move(backend)};
}

}  // namespace trireme
