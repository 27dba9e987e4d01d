#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/log.h"
#include "model/evaluation.h"
#include "recipe/recipe.h"
#include "record/json.h"
#include "report/page/page.h"

namespace trireme {

// Cross-validation: a run for each fold of the samples (data/folds.h), tested with that fold and
// trained with the others. Its folder:
//
//   recipe.toml    what is trained, but for the fold: another recipe is refused
//   fold-1 ...     a run each, with fold-1.log (what it said)
//   summary.json   what all folds say together
//
// A fold that has a summary is done. One that was interrupted goes on from its last checkpoint.

struct FoldsPlan {
  Recipe recipe;  // data.folds says how many
  std::string out;
  int parallel = 1;  // folds at once, each with its share of the processors

  int folds() const { return recipe.data.folds; }
  std::string Folder(int fold) const { return out + "/fold-" + std::to_string(fold + 1); }
};

struct FoldsContext {
  // Trains with these words, prints to `log`, gives the exit code.
  std::function<int(const std::vector<std::string>& words, const std::string& log)> train;
  std::function<int()> stopped;  // an exit code if somebody wants to stop, else 0
  std::function<void(const std::string& line)> say;
};

// UsageError where the recipe cannot be cross-validated.
void CheckFolds(const FoldsPlan& plan);

// Trains the folds that are left. 0, or the code with which it was stopped. One at a time works in
// a folder. UsageError if it belongs to another recipe; Error if a fold fails: the same again
// tries it again.
int TrainFolds(const FoldsPlan& plan, const FoldsContext& context);

// What the folds say, each and together.
struct FoldsResult {
  std::vector<std::string> classes;
  std::vector<Json> summaries;  // of the folds
  Evaluation pooled;            // every sample once, by the model that was not trained with it
  RocCurves roc;                // of all these scores together

  // Of the folds' numbers of that name; nothing where one has none.
  std::optional<std::vector<double>> Numbers(const char* name) const;
};

// The numbers of a summary of which folds give mean and deviation, with a title for people.
struct FoldNumber {
  const char* name;
  const char* title;
  bool share;
};
std::span<const FoldNumber> FoldNumbers();

// Evaluates the model of each fold, as `eval` does. All folds are done.
FoldsResult ReadFolds(const FoldsPlan& plan, const Log& log);

Json FoldsJson(const FoldsPlan& plan, const FoldsResult& result);  // summary.json
std::string FoldsText(const FoldsResult& result);                  // a row per fold
Page FoldsPage(const FoldsPlan& plan, const FoldsResult& result, const std::string& command);

}  // namespace trireme
