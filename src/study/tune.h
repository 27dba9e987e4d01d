#pragma once
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "record/json.h"
#include "report/page/page.h"
#include "study/rate_range.h"
#include "study/search_space.h"
#include "study/sweep.h"

namespace trireme {

// A search for settings: a range test of the learning rate, then trials with values drawn at
// random. Its folder:
//
//   plan.json      what is searched: another plan is refused
//   recipe.toml    what is trained, complete; a trial changes some keys of it
//   range          the run of the range test, with range.log; range.json is there when it is done
//   rung-1 ...     the trials: a sweep's folder each (study/sweep.h). Without halving there is one
//   best.toml      the recipe of the best trial, or with the range test's rate if there are none
//
// What is done is not run again, and every value depends on the plan alone, so a search that was
// killed gives the same table as one that was not.

struct TunePlan {
  std::string name;  // of the recipe, or where there is none the data
  Recipe recipe;     // complete
  std::vector<SearchKey> keys;
  int trials = 0;
  bool halving = false;  // most trials train for a part of the epochs
  std::string out;
};

struct TuneContext {
  std::function<int(const std::vector<std::string>& words, const std::string& log)> train;
  std::function<int()> stopped;  // an exit code if somebody wants to stop, else 0
  std::function<void(const std::string& line)> say;
  std::function<bool()> enough;  // no further trial is begun
  int parallel = 1;              // trials at once, each with its share of the processors
};

// UsageError: too few or too many trials, a key that a setting gives as well, no rate to test.
void CheckTune(const TunePlan& plan);

// Makes or takes up the folder. UsageError if it holds another plan.
void AdoptTune(const TunePlan& plan);

// The range test, if it is not done. 0, or the code with which it was stopped.
int TestRange(const TunePlan& plan, const TuneContext& context);
RangeResult LoadRange(const TunePlan& plan);  // that is done

// Keys for trials where nobody names one: the rate, from a tenth of the suggestion to ten times it.
std::vector<SearchKey> KeysAround(double suggestion);

// The trials that are left. 0, or the code with which it was stopped.
int RunTrials(const TunePlan& plan, const TuneContext& context);

// A trial as far as it came.
struct Trial {
  int number = 0;                   // from 1
  std::vector<std::string> values;  // of the plan's keys
  int rung = 0;                     // the last one that it trained in, from 1
  Recipe recipe;                    // there
  SweepRun run;                     // of that rung
};
struct TuneResult {
  RangeResult range;
  std::vector<Trial> trials;   // that are done
  std::optional<size_t> best;  // of those in the last rung
  bool validated = false;      // a validation part decides, else the test part
};
TuneResult ReadTune(const TunePlan& plan);

// Higher is better: an accuracy, or minus an RMSE; of the validation part where there is one.
// Nothing of a run that failed.
std::optional<double> MeritOf(const SweepRun& run);

// Of the trials of a rung, by number, those that go on to the next: the best third, rounded up.
std::vector<int> Survivors(std::span<const Trial> rung);

Recipe BestRecipe(const TunePlan& plan, const TuneResult& result);

std::string TuneText(const TunePlan& plan, const TuneResult& result);  // a table, a row per trial
std::string TuneCsv(const TunePlan& plan, const TuneResult& result);
Json TuneJson(const TunePlan& plan, const TuneResult& result);
Page TunePage(const TunePlan& plan, const TuneResult& result, const std::string& command);

}  // namespace trireme
