#include "model/given_weights.h"

#include <filesystem>

#include "base/error.h"
#include "base/files.h"
#include "graph/models/onnx_model.h"
#include "model/model_file.h"
#include "record/checkpoint.h"
#include "record/checkpoint_folder.h"
#include "record/state_files.h"

namespace trireme {

namespace fs = std::filesystem;

std::string FindWeights(const std::string& path, const Log& log) {
  std::error_code ignored;
  if (path.starts_with(kOnnxPrefix)) return path;
  if (!fs::is_directory(path, ignored)) return path;
  if (Exists(path + "/" + kStateFile)) {
    // Not by the name of a link: what that means may change.
    const fs::path target = fs::read_symlink(path, ignored);
    const fs::path folder = ignored ? fs::path(path) : fs::path(path).parent_path() / target;
    return Checkpoint(folder.string()).files().model;
  }
  const std::string checkpoints = path + "/checkpoints";
  const auto found = OpenCheckpoint(checkpoints, HasBestCheckpoint(checkpoints) ? "best" : "last");
  if (!found) {
    throw Error("{}: holds no weights: it is neither a checkpoint nor a run that has one", path);
  }
  if (!found->warning.empty()) log.Warn("init", "{}", found->warning);
  return found->checkpoint.files().model;
}

void TakeWeights(const std::string& file, const std::string& except, const Graph& graph,
                 const Layout& layout, std::span<float> state, const Log& log) {
  if (file.starts_with(kOnnxPrefix)) {
    InitModel(graph, layout, OnnxNetwork(file.substr(kOnnxPrefix.size())), state, log, except);
  } else {
    InitModel(graph, layout, StateFileReader(file), state, log, except);
  }
  const std::string broken = FirstNotFinite(graph, layout, state);
  if (broken.empty()) return;
  throw Error("{}: tensor \"{}\" holds values that are not finite", file, broken);
}

}  // namespace trireme
