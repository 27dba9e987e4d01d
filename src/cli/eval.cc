// How well a trained model does on test samples.
#include <fmt/core.h>

#include "base/text.h"
#include "cli/command.h"
#include "cli/evaluation_text.h"
#include "cli/open_model.h"
#include "cli/recipe_flags.h"
#include "data/sources.h"
#include "flat/staging.h"
#include "model/evaluation.h"
#include "trainer/data_notes.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--data", "SOURCE",
     "evaluate on these samples instead of the run's: their test part, or all if they have none"},
    {"--checkpoint", "WHICH", "best, last or a step (default: last)"},
    {"--threads", "N", "compute threads, or auto", "trainer.threads"},
    kDeviceFlag,
    {"--json", "", "print JSON"},
};
constexpr Place kPlaces[] = {{"RUN", Place::kRequired, "a run's directory"}};

DataSet OpenSamples(const Args& args, const SavedModel& model) {
  DataOptions options = model.recipe.data;
  if (const auto other = args.Value("--data")) {
    options.source = *other;
    return OpenForTest(options, model.card.shape, model.card.known());
  }
  return OpenData(options, model.recipe.trainer.seed, model.card.known());
}

int Run(const Args& args, Process& process) {
  const Log log(process.log);
  const auto [model, backend] = OpenModel(args, log);
  const DataSet data = OpenSamples(args, model);
  SayLeftOut(log, data.left_out);
  if (args.Has("--data")) SayNotes(log, data.notes);  // of its own they were said in training
  if (!(data.shape == model.card.shape)) {
    throw Error("{} has samples of {}x{}x{}, the model takes {}x{}x{}", data.name,
                data.shape.height, data.shape.width, data.shape.channels, model.card.shape.height,
                model.card.shape.width, model.card.shape.channels);
  }

  if (data.task != model.card.task()) {
    throw Error("{} is for {}, the model for {}", data.name, NameOf(data.task),
                NameOf(model.card.task()));
  }
  const auto queue = backend.engine->device().NewQueue();
  const Buffer state(backend.engine->device(), model.layout.state);
  flat::PutNow(*queue, model.state, state);
  Evaluator evaluator(model.graph, *backend.engine, *queue, *data.test, model.card.normalizer,
                      EvaluationThreads(model.recipe, *data.test));
  const Evaluation result = evaluator.Run(state);
  queue->Sync();
  const RocCurves roc = evaluator.Details().roc;
  const std::string which = (data.train ? "the test part of " : "all of ") + data.name;
  process.out.Write(args.Has("--json") ? EvaluationJson(result, roc, model.card.classes, which)
                                       : EvaluationText(result, roc, model.card.classes, which));
  return 0;
}

}  // namespace

extern const Command kEval;
const Command kEval = {
    .name = "eval",
    .summary = "evaluate a trained model on test samples",
    .usage = "trireme eval RUN [--checkpoint WHICH] [--data SOURCE] [--json]",
    .examples =
        "trireme eval runs/a                          # on the test samples of its own data\n"
        "trireme eval runs/a --checkpoint best        # its best evaluation, not its last\n"
        "trireme eval runs/a --data fashion-mnist\n"
        "trireme eval runs/a --data csv:new.csv       # on every row of the file\n"
        "trireme eval runs/a --json\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
