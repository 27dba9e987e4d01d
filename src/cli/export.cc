// A trained model for other programs.
#include <fmt/core.h>

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "model/onnx/onnx_export.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--onnx", "FILE", "write an ONNX file, for onnxruntime and others (`docs/networks.md`)"},
    {"--checkpoint", "WHICH", "best, last or a step (default: last)"},
};
constexpr Place kPlaces[] = {{"RUN", Place::kRequired, "a run's directory"}};

int Run(const Args& args, Process& process) {
  const auto file = args.Value("--onnx");
  if (!file) throw UsageError("--onnx is missing; name the file to write");
  const SavedModel model = LoadSavedModel(args.Required("RUN"), Log(process.log),
                                          args.Value("--checkpoint").value_or("last"));
  const std::string bytes = OnnxBytes(model);
  ReplaceFile(*file, bytes);
  process.out.Print("{}: {} of step {}, {}\n", *file, model.recipe.model.name, model.step,
                    FormatBytes(double(bytes.size())));
  return 0;
}

}  // namespace

extern const Command kExport;
const Command kExport = {
    .name = "export",
    .summary = "write a trained model as ONNX",
    .usage = "trireme export RUN --onnx FILE [--checkpoint WHICH]",
    .examples =
        "trireme export runs/a --onnx a.onnx\n"
        "trireme export runs/a --onnx a.onnx --checkpoint best\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
