#include <fmt/format.h>

#include <algorithm>

#include "base/machine.h"
#include "base/text.h"
#include "base/version.h"
#include "study/replay.h"

namespace trireme {
namespace {

std::optional<Spread> TimeOf(const SweepNumbers& row) { return row.seconds; }

// A point of the published table beside ours; both as times and as how many times as fast as the
// first.
struct Beside {
  std::string name;
  std::optional<double> x;
  std::optional<double> published_s, ours_s, published_speed, our_speed;
};

std::optional<double> PublishedAt(const PublishedTable& table, const std::string& value) {
  if (table.kind == PublishedTable::Kind::kNames) {
    const char* name = value == "f32" ? "float32" : value == "bf16" ? "mixed" : "";
    const auto at = std::find(table.names.begin(), table.names.end(), name);
    if (at == table.names.end()) return {};
    return table.seconds[size_t(at - table.names.begin())];
  }
  const auto at = std::find(table.x.begin(), table.x.end(), ParseNumber<double>(value));
  if (at == table.x.end()) return {};
  return table.seconds[size_t(at - table.x.begin())];
}

std::vector<std::string> NamesOf(const PublishedTable& table, const Variation& variation) {
  std::vector<std::string> names = variation.values;
  for (const double x : table.x) {
    const std::string name = fmt::format("{:g}", x);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::vector<Beside> BesideOf(const ReplayedPart& replayed) {
  const PublishedTable& table = *replayed.part.published;
  const Variation& variation = replayed.part.plan.vary[replayed.part.axis];
  std::vector<Beside> all;
  for (const std::string& name : NamesOf(table, variation)) {
    Beside one{.name = name, .x = ParseNumber<double>(name)};
    one.published_s = PublishedAt(table, name);
    for (const SweepNumbers& row : replayed.rows) {
      if (row.combination.values[replayed.part.axis] == name && row.seconds) {
        one.ours_s = row.seconds->median;
      }
    }
    if (one.published_s) one.published_speed = table.seconds[0] / *one.published_s;
    if (one.ours_s && !all.empty() && all[0].ours_s) one.our_speed = *all[0].ours_s / *one.ours_s;
    if (one.ours_s && all.empty()) one.our_speed = 1;
    all.push_back(std::move(one));
  }
  return all;
}

std::string NumberOr(const std::optional<double>& value) {
  return value ? fmt::format("{:.2f}", *value) : "-";
}

std::vector<std::string> BesideHeader(const ReplayPart& part) {
  return {std::string(part.published->axis), "published", "speed-up", "ours", "speed-up"};
}

std::vector<std::string> BesideCells(const Beside& one) {
  return {one.name, one.published_s ? FormatClock(*one.published_s) : "-",
          NumberOr(one.published_speed), one.ours_s ? FormatSeconds(*one.ours_s) : "-",
          NumberOr(one.our_speed)};
}

// What our runs say of it, or that they say nothing.
std::string OursOf(const ReplayClaim& claim, const ReplayedPart& replayed) {
  const std::string ours = claim.ours ? claim.ours(replayed.part, replayed.rows) : "";
  return ours.empty() ? "not measured here" : ours;
}

PageTable ClaimsTable(const ReplayedPart& replayed) {
  PageTable table{.title = "Published in words", .header = {"published", "source", "ours"}};
  for (const ReplayClaim& claim : replayed.part.claims) {
    table.rows.push_back({std::string(claim.published->text), std::string(claim.published->source),
                          OursOf(claim, replayed)});
  }
  return table;
}

LineChart BesideChart(const ReplayedPart& replayed) {
  const std::string axis(replayed.part.published->axis);
  LineChart chart{.title = fmt::format("Speed-up over {}, relative to the first", axis),
                  .x = {.title = axis, .from_zero = false},
                  .y = {.title = "speed-up"}};
  Curve published{.name = "published", .kind = CurveKind::kPublished};
  Curve ours{.name = "ours", .kind = CurveKind::kMeasured};
  Curve ideal{.name = "ideal", .kind = CurveKind::kIdeal};
  const std::vector<Beside> points = BesideOf(replayed);
  for (const Beside& point : points) {
    if (!point.x) continue;
    if (point.published_speed) {
      published.x.push_back(*point.x);
      published.y.push_back(*point.published_speed);
    }
    if (point.our_speed) {
      ours.x.push_back(*point.x);
      ours.y.push_back(*point.our_speed);
    }
    ideal.x.push_back(*point.x);
    ideal.y.push_back(*point.x / *points[0].x);
  }
  chart.curves = {std::move(ours), std::move(published), std::move(ideal)};
  chart.caption =
      "Source of the published times: " + std::string(replayed.part.published->source) + ".";
  return chart;
}

Section PartSection(const ReplayedPart& replayed) {
  const ReplayPart& part = replayed.part;
  Section section{.title = part.title};
  if (!part.text.empty()) section.blocks.push_back(Paragraph{part.text});
  if (!part.skipped.empty()) {
    section.blocks.push_back(Paragraph{"Skipped: " + part.skipped + "."});
    return section;
  }
  const Variation& variation = part.plan.vary[part.axis];
  if (part.published && HasNumbers(variation)) section.blocks.push_back(BesideChart(replayed));
  if (HasNumbers(variation)) {
    LineChart chart{.title = part.title + " (ours)",
                    .x = {.title = variation.key, .from_zero = false},
                    .y = {.title = "training time", .unit = "s"}};
    chart.curves = CurvesOver(part.plan, replayed.rows, part.axis, TimeOf);
    chart.caption = "Bars reach from the slowest to the fastest run.";
    if (!chart.curves.empty()) section.blocks.push_back(std::move(chart));
  }
  if (part.published) {
    PageTable table{.title = "Published and ours", .header = BesideHeader(part)};
    for (const Beside& one : BesideOf(replayed)) table.rows.push_back(BesideCells(one));
    table.caption = "Published: " + std::string(part.published->title) +
                    ". Source: " + std::string(part.published->source) + ".";
    section.blocks.push_back(std::move(table));
  }
  if (!part.claims.empty()) section.blocks.push_back(ClaimsTable(replayed));
  section.blocks.push_back(SweepPageTable(part.plan, replayed.rows));
  return section;
}

}  // namespace

std::string ReplayText(const Replay& replay, std::span<const ReplayedPart> parts) {
  std::string text = replay.title + "\n" + replay.text + "\n";
  for (const ReplayedPart& replayed : parts) {
    const ReplayPart& part = replayed.part;
    text += "\n" + part.title + "\n";
    if (!part.text.empty()) text += part.text + "\n";
    if (!part.skipped.empty()) {
      text += "skipped: " + part.skipped + "\n";
      continue;
    }
    text += SweepText(part.plan, replayed.rows);
    for (const ReplayClaim& claim : part.claims) {
      text += fmt::format("published: {}; source: {}\n     ours: {}\n", claim.published->text,
                          claim.published->source, OursOf(claim, replayed));
    }
    if (!part.published) continue;
    const auto line = [&](const std::vector<std::string>& cells) {
      text += fmt::format("{:>16} {:>10} {:>14} {:>10} {:>14}\n", cells[0], cells[1], cells[2],
                          cells[3], cells[4]);
    };
    line(BesideHeader(part));
    for (const Beside& one : BesideOf(replayed)) line(BesideCells(one));
  }
  return text;
}

Json ReplayJson(const Replay& replay, std::span<const ReplayedPart> parts) {
  Json list = Json::Array();
  for (const ReplayedPart& replayed : parts) {
    const ReplayPart& part = replayed.part;
    Json entry = Json::Object();
    entry.Add("name", part.name).Add("title", part.title).Add("text", part.text);
    if (!part.skipped.empty()) {
      list.Append(std::move(entry.Add("skipped", part.skipped)));
      continue;
    }
    if (part.published) {
      Json points = Json::Array();
      for (const Beside& one : BesideOf(replayed)) {
        const auto number = [](const std::optional<double>& x) { return x ? Json(*x) : Json(); };
        Json point = Json::Object();
        point.Add("at", one.name).Add("published_seconds", number(one.published_s));
        point.Add("seconds", number(one.ours_s));
        point.Add("published_speedup", number(one.published_speed));
        points.Append(std::move(point.Add("speedup", number(one.our_speed))));
      }
      entry.Add("source", part.published->source).Add("beside", std::move(points));
    }
    Json claims = Json::Array();
    for (const ReplayClaim& claim : part.claims) {
      Json one = Json::Object();
      one.Add("published", claim.published->text).Add("source", claim.published->source);
      claims.Append(std::move(one.Add("ours", OursOf(claim, replayed))));
    }
    if (!part.claims.empty()) entry.Add("claims", std::move(claims));
    list.Append(std::move(entry.Add("sweep", SweepJson(part.plan, replayed.rows))));
  }
  Json json = Json::Object();
  json.Add("what", "replay").Add("name", replay.name).Add("title", replay.title);
  json.Add("version", Version()).Add("parts", std::move(list));
  return json;
}

Page ReplayPage(const Replay& replay, std::span<const ReplayedPart> parts,
                const std::string& command) {
  Page page{.title = replay.title, .subtitle = "a published experiment, repeated"};
  page.sections.push_back({.title = "The experiment", .blocks = {Paragraph{replay.text}}});
  for (const ReplayedPart& part : parts) page.sections.push_back(PartSection(part));
  const Machine machine = ReadMachine();
  page.sections.push_back(
      {.title = "How",
       .blocks = {Paragraph{fmt::format(
                      "trireme {} on {} ({}).", Version(),
                      machine.cpu_model.empty() ? machine.architecture : machine.cpu_model,
                      machine.kernel)},
                  Commands{{command}}}});
  return page;
}

}  // namespace trireme
