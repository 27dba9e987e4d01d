#include "model/saved_model.h"

#include "base/error.h"
#include "engine/engines.h"
#include "graph/layout.h"
#include "graph/models/models.h"
#include "model/model_file.h"
#include "record/checkpoint.h"

namespace trireme {

SavedModel LoadSavedModel(const std::string& run, const Log& log, const std::string& which) {
  Recipe recipe;
  Sections sections;
  Bind(sections, recipe);
  LoadRunRecipe(sections, run);

  const auto found = OpenCheckpoint(run + "/checkpoints", which);
  if (!found) {
    throw Error("{} has no checkpoint yet; train it further with trireme train --resume {}", run,
                run);
  }
  if (!found->warning.empty()) log.Warn("load", "{}", found->warning);
  const Checkpoint& checkpoint = found->checkpoint;
  ModelCard card = ModelCard::Load(checkpoint.state());
  if (!card.layers.empty()) recipe.model.layers = card.layers;
  Graph graph = BuildModel(recipe.model, {card.shape.height, card.shape.width, card.shape.channels},
                           card.outputs());
  Layout layout = LayOut(graph);
  std::vector<float> state = InitialState(graph, layout, 0);
  ReadModel(graph, layout, checkpoint.model(), state);
  return {std::move(recipe), std::move(card),  std::move(graph),
          std::move(layout), std::move(state), checkpoint.step()};
}

void ChooseDeviceHere(TrainerOptions& trainer, bool given, const Log& log) {
  DeviceChoice device = FindDevice(trainer.device);
  if (!given) {
    std::string why;
    device = DeviceHere(device, why);
    if (!why.empty()) {
      log.Warn("load", "the run's device {} is not here ({}); {} computes instead", trainer.device,
               why, device.Text());
    }
    trainer.device = device.Text();
  }
  trainer.precision = NameOf(PrecisionHere(*device.kind, trainer.precision));
}

}  // namespace trireme
