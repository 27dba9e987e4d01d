// What would happen on more ranks than there are.
#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "cli/command.h"
#include "study/forecast.h"
#include "study/link_words.h"
#include "study/results.h"
#include "study/step_probe.h"
#include "trainer/job.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--to", "N", "predict up to this many ranks (or nodes, loader workers) (64)"},
    {"--link", "RATE,LATENCY",
     "link between nodes, as in 100Gbit/s,2us (default: that of the runs)"},
    {"--per-node", "N", "ranks on each node (1)"},
    {"--inner", "RATE,LATENCY", "link inside a node (default: 10GB/s,1us)"},
    {"--jitter", "PERCENT", "deviation of a worker's compute time from step to step (0%)"},
    {"--algorithm", "NAME", "how gradients are summed (default: what auto would choose)"},
    {"--bucket-mb", "X", "megabytes of gradients summed at a time (default: the run's)"},
    {"--weak", "", "each worker keeps its samples per step, so the batch grows with the ranks"},
    {"--check", "RUN", "a run to compare with, which is not used for the model; may be repeated"},
    {"--published", "TABLE",
     "predict a published table instead: ddp-gpus, ddp-nodes or ddp-loaders"},
    {"--fit", "LIST", "points of the published table to fit, as in 1,2,4"},
    {"--floor", "TIME",
     "for --published: the time never falls below this, as in 32:06; 0: no limit"},
    {"--out", "DIR", "write scale.json and a page to this directory"},
    {"--json", "", "print JSON"},
};

constexpr Place kPlaces[] = {
    {"RUN", Place::kMany,
     "runs of the same recipe, ideally with one rank and with two; or a recipe"}};

LinkSpeed SpeedOf(const std::string& text) {
  const LinkWords words = ParseLink(text);
  return {words.latency_ms * 1e-3, 1 / words.bytes_per_s};
}

double PercentOf(const Args& args) {
  std::string text = args.Value("--jitter").value_or("0");
  if (!text.empty() && text.back() == '%') text.pop_back();
  const auto percent = ParseNumber<double>(text);
  if (!percent || *percent < 0 || *percent > 100) {
    throw UsageError("--jitter must be a percentage between 0% and 100%, got {}", text);
  }
  return *percent / 100;
}

int SizeOf(const Args& args, int otherwise) {
  const auto to = args.Number<int64_t>("--to", otherwise);
  if (to < 1 || to > 1'000'000) {
    throw UsageError("--to must be between 1 and 1000000, got {}", to);
  }
  return int(to);
}

std::string CommandOf(const Args& args) {
  std::vector<std::string> words{"trireme", "scale"};
  for (const std::string& word : args.Many("RUN")) words.push_back(word);
  const auto flags = args.FlagsWithout({"--out", "--json"});
  words.insert(words.end(), flags.begin(), flags.end());
  return ShellLine(words);
}

void Show(const Args& args, Process& process, const std::string& text, const Json& json,
          const Page& page) {
  if (const auto out = args.Value("--out")) {
    MakeDirectories(*out);
    ReplaceFile(*out + "/scale.json", json.Text(1) + "\n");
    WritePage(page, *out);
  }
  process.out.Write(args.Has("--json") ? json.Text() + "\n" : text);
}

int RunPublished(const Args& args, Process& process, const std::string& name) {
  if (!args.Many("RUN").empty()) {
    throw UsageError("--published {} takes no run; remove {}", name, args.Many("RUN")[0]);
  }
  std::vector<double> fit;
  const auto list = args.Value("--fit");
  if (!list) throw UsageError("--fit is missing; name the points of the table to fit, as in 1,2,4");
  for (const std::string& text : Split(*list, ',')) {
    const auto number = ParseNumber<double>(Trim(text));
    if (!number) throw UsageError("--fit must be numbers separated by commas, got {}", *list);
    fit.push_back(*number);
  }
  double floor = -1;
  if (const auto text = args.Value("--floor")) {
    const auto seconds = ParseClock(*text);
    if (!seconds) throw UsageError("--floor must be a time like 32:06, got {}", *text);
    floor = *seconds;
  }
  const PublishedForecast forecast =
      ForecastPublished(FindPublished(name), fit, SizeOf(args, 16), floor);
  Show(args, process, PublishedText(forecast), PublishedJson(forecast),
       PublishedPage(forecast, CommandOf(args)));
  return 0;
}

// Runs are read; a recipe is measured here.
StepFit FitFrom(const std::vector<std::string>& words, const std::optional<LinkSpeed>& link,
                std::vector<StepMeasurement>& runs) {
  if (words.size() == 1 && !Exists(words[0] + "/config.toml")) {
    StepFit fit;
    Recipe recipe;
    Sections sections;
    Bind(sections, recipe);
    LoadRecipe(sections, words[0]);
    if (!link) throw UsageError("the speed of the link is unknown; use --link RATE,LATENCY");
    SettleDevice(recipe, sections.IsGiven("trainer.device"));
    fit.model = ProbeStep(recipe);
    fit.bucket_bytes = ChoiceOf(recipe).bucket_bytes;
    fit.cluster.link = {*link, *link, kAssumedSecondsPerAddedByte};
    fit.remarks = {"compute time measured here on one rank",
                   fmt::format("link given: {}/s, {}", FormatBytes(1 / link->seconds_per_byte),
                               FormatSeconds(link->latency_s))};
    return fit;
  }
  for (const std::string& word : words) {
    runs.push_back(ReadMeasurement(word));
    if (runs.back().recipe.model.name != runs[0].recipe.model.name) {
      throw UsageError("{} trains {}, but {} trains {}; name runs of one recipe", word,
                       runs.back().recipe.model.name, words[0], runs[0].recipe.model.name);
    }
  }
  return FitStep(ProbeStretches(runs[0].recipe), runs, link);
}

int Run(const Args& args, Process& process) {
  if (const auto name = args.Value("--published")) return RunPublished(args, process, *name);
  const std::vector<std::string> words = args.Many("RUN");
  if (words.empty()) throw UsageError("RUN is missing; name one or several runs, or a recipe");
  std::optional<LinkSpeed> link;
  if (const auto text = args.Value("--link")) link = SpeedOf(*text);
  std::vector<StepMeasurement> runs, checks;
  for (const std::string& run : args.Values("--check")) checks.push_back(ReadMeasurement(run));
  ForecastQuestion question{.to = SizeOf(args, 64), .algorithm = args.Value("--algorithm")};
  if (question.algorithm && *question.algorithm != "shared") FindAllReduce(*question.algorithm);
  if (args.Has("--bucket-mb")) {
    const double megabytes = args.Number("--bucket-mb", 4.0);
    if (megabytes <= 0) throw UsageError("--bucket-mb must be above 0, got {}", megabytes);
    question.bucket_bytes = megabytes * 1e6;
  }
  const double jitter = PercentOf(args);
  const int per_node = args.Number("--per-node", 1);
  if (per_node < 1) throw UsageError("--per-node must be at least 1, got {}", per_node);
  const LinkSpeed inner = SpeedOf(args.Value("--inner").value_or("10GB/s,1us"));
  StepFit fit = FitFrom(words, link, runs);
  fit.cluster.jitter = jitter;
  fit.cluster.ranks_per_node = per_node;
  if (per_node > 1) {
    fit.cluster.link.inner = inner;
    fit.remarks.push_back(fmt::format("nodes of {} ranks, linked inside by {}", per_node,
                                      args.Value("--inner").value_or("10GB/s,1us (assumed)")));
  }
  if (jitter > 0) {
    fit.remarks.push_back(
        fmt::format("compute time varies by {:g} % from step to step, normally distributed; every "
                    "step waits for the slowest rank",
                    100 * jitter));
  }
  if (args.Has("--weak") && !fit.model.batch_per_worker) fit.model.batch_per_worker = true;
  const std::vector<ForecastRow> rows = Forecast(fit, question, runs, checks);
  Show(args, process, ForecastText(fit, rows), ForecastJson(fit, rows),
       ForecastPage(fit, rows, std::filesystem::path(words[0]).filename().string(),
                    CommandOf(args)));
  return 0;
}

}  // namespace

extern const Command kScale;
const Command kScale = {
    .name = "scale",
    .summary = "predict the time on more ranks and nodes, or on other links",
    .usage = "trireme scale RUN...|RECIPE [--to 64] [--link RATE,LATENCY] [flags]",
    .examples =
        "trireme scale runs/one runs/two --to 64            # from runs with 1 rank and with 2\n"
        "trireme scale fashion-cnn --link 100Gbit/s,2us --per-node 4 --to 10000\n"
        "trireme scale runs/one runs/two --check runs/four --jitter 5% --out runs/scale\n"
        "trireme scale --published ddp-nodes --fit 1,2,4 --to 16\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
