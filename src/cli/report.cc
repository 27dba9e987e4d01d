// One page of runs, sweeps and comparisons that opens anywhere.
#include <fmt/format.h>

#include <filesystem>

#include "base/files.h"
#include "cli/command.h"
#include "report/page/page_html.h"
#include "report/page/page_json.h"
#include "report/page/run_page.h"

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--out", "FILE",
     "where the page is written; - is the standard output (default: DIR/report.html, or "
     "report.html for several)"},
};

constexpr Place kPlaces[] = {
    {"DIR", Place::kMany, "directories of runs, sweeps, comparisons, replays, cross-validations"}};

struct Shown {
  std::vector<RunData> runs;          // over each other
  std::vector<Page> pages;            // one after the other
  std::vector<std::string> left_out;  // why
};

void ReadShown(const std::string& folder, Shown& shown) {
  if (Exists(folder + "/page.json")) {
    shown.pages.push_back(ReadPageJson(folder + "/page.json"));
    return;
  }
  if (!Exists(folder)) throw UsageError("{}: does not exist", folder);
  if (!Exists(folder + "/config.toml") && !Exists(folder + "/metrics.jsonl")) {
    throw UsageError(
        "{}: is neither a run (config.toml, metrics.jsonl) nor the result of a sweep or comparison "
        "(page.json)",
        folder);
  }
  shown.runs.push_back(ReadRun(folder));
}

Page Together(const Shown& shown) {
  if (shown.runs.empty() && shown.pages.size() == 1 && shown.left_out.empty()) {
    return shown.pages[0];
  }
  Page page;
  if (!shown.runs.empty()) page = RunsPage(shown.runs);
  if (shown.runs.empty()) page.title = fmt::format("{} results", shown.pages.size());
  for (const Page& next : shown.pages) {
    Section head{next.title, {}};
    if (!next.subtitle.empty()) head.blocks.push_back(Paragraph{next.subtitle});
    page.sections.push_back(std::move(head));
    page.sections.insert(page.sections.end(), next.sections.begin(), next.sections.end());
  }
  if (!shown.left_out.empty()) {
    Section section{"Left out", {}};
    for (const std::string& why : shown.left_out) section.blocks.push_back(Paragraph{why});
    page.sections.push_back(std::move(section));
  }
  return page;
}

// Of many, one that cannot be read is left out; alone it is an error. What is not there is one
// always: somebody has named it.
Shown ReadAll(const std::vector<std::string>& folders, const Log& log) {
  Shown shown;
  for (const std::string& folder : folders) {
    if (folders.size() == 1 || !Exists(folder)) {
      ReadShown(folder, shown);
      continue;
    }
    try {
      ReadShown(folder, shown);
    } catch (const Error& error) {
      shown.left_out.emplace_back(error.what());
    }
  }
  if (shown.runs.empty() && shown.pages.empty()) throw Error("{}", shown.left_out.front());
  for (const std::string& why : shown.left_out) log.Warn("report", "left out: {}", why);
  return shown;
}

int Run(const Args& args, Process& process) {
  const auto folders = args.Many("DIR");
  if (folders.empty()) throw UsageError("DIR is missing; name the directory of a run or a sweep");
  const Shown shown = ReadAll(folders, Log(process.log, Log::kNoRank));
  const std::string out = args.Value("--out").value_or(
      folders.size() == 1 ? folders[0] + "/report.html" : "report.html");
  const std::string html = PageHtml(Together(shown));
  if (process.out.Is(out)) {
    process.out.Write(html);
    return 0;
  }
  const auto parent = std::filesystem::path(out).parent_path();
  if (!parent.empty()) MakeDirectories(parent);
  ReplaceFile(out, html);
  process.out.Print("{} ({})\n", out, FormatBytes(double(html.size())));
  return 0;
}

}  // namespace

extern const Command kReport;
const Command kReport = {
    .name = "report",
    .summary = "write a page with charts of runs, sweeps and comparisons",
    .usage = "trireme report DIR... [--out page.html]",
    .examples =
        "trireme report runs/a                        # writes runs/a/report.html\n"
        "trireme report runs/a runs/b --out ab.html   # both in the same charts\n"
        "trireme report runs/compare-1                # a comparison or a sweep\n",
    .flags = kFlags,
    .places = kPlaces,
    .run = Run,
};

}  // namespace trireme
