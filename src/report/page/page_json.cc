#include "report/page/page_json.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "base/error.h"
#include "base/files.h"
#include "record/json.h"

namespace trireme {
namespace {

constexpr int kPageVersion = 1;
constexpr size_t kMostPageBytes = size_t{256} << 20;
constexpr const char* kKindNames[] = {"measured", "predicted", "published", "ideal", "other"};

// ---- writing

Json ToPageJson(const Axis& axis) {
  Json json = Json::Object();
  json.AddNew("title", axis.title).AddNew("unit", axis.unit);
  json.AddNew("logarithmic", axis.logarithmic).AddNew("from_zero", axis.from_zero);
  return json;
}

Json ToPageJson(const std::vector<std::vector<double>>& rows) {
  Json json = Json::Array();
  for (const auto& row : rows) json.Append(row);
  return json;
}

Json ToPageJson(const Curve& curve) {
  Json json = Json::Object();
  json.AddNew("name", curve.name).AddNew("kind", kKindNames[int(curve.kind)]);
  json.AddNew("x", curve.x).AddNew("y", curve.y);
  json.AddNew("low", curve.low).AddNew("high", curve.high).AddNew("style", curve.style);
  return json;
}

Json ToPageJson(const LineChart& chart) {
  Json curves = Json::Array();
  for (const Curve& curve : chart.curves) curves.Append(ToPageJson(curve));
  Json json = Json::Object();
  json.AddNew("block", "line").AddNew("title", chart.title);
  json.AddNew("x", ToPageJson(chart.x)).AddNew("y", ToPageJson(chart.y));
  json.AddNew("curves", std::move(curves)).AddNew("caption", chart.caption);
  if (!chart.own_legend) json.AddNew("own_legend", false);
  return json;
}

Json ToPageJson(const BarChart& chart) {
  Json json = Json::Object();
  json.AddNew("block", "bars").AddNew("title", chart.title).AddNew("y", ToPageJson(chart.y));
  json.AddNew("bars", chart.bars).AddNew("parts", chart.parts);
  json.AddNew("values", ToPageJson(chart.values)).AddNew("caption", chart.caption);
  json.AddNew("bars_title", chart.bars_title);
  return json;
}

Json ToPageJson(const HeatChart& chart) {
  Json json = Json::Object();
  json.AddNew("block", "heat").AddNew("title", chart.title);
  json.AddNew("row_title", chart.row_title).AddNew("column_title", chart.column_title);
  json.AddNew("rows", chart.rows).AddNew("columns", chart.columns);
  json.AddNew("values", ToPageJson(chart.values)).AddNew("caption", chart.caption);
  return json;
}

Json ToPageJson(const PageTable& table) {
  Json rows = Json::Array();
  for (const auto& row : table.rows) rows.Append(row);
  Json json = Json::Object();
  json.AddNew("block", "table").AddNew("title", table.title).AddNew("header", table.header);
  json.AddNew("rows", std::move(rows)).AddNew("caption", table.caption);
  json.AddNew("folded", table.folded);
  if (table.sortable) json.AddNew("sortable", true);
  if (!table.styles.empty()) json.AddNew("styles", table.styles);
  if (table.bold.empty()) return json;
  Json bold = Json::Array();
  for (const PageTable::Cell& cell : table.bold) {
    bold.Append(std::vector<size_t>{cell.row, cell.column});
  }
  json.AddNew("bold", std::move(bold));
  return json;
}

Json ToPageJson(const Figures& block) {
  Json figures = Json::Array();
  for (const Figures::Figure& figure : block.figures) {
    figures.Append(std::vector<std::string>{figure.value, figure.title, figure.note});
  }
  Json json = Json::Object();
  json.AddNew("block", "figures").AddNew("figures", std::move(figures));
  return json;
}

Json ToPageJson(const Pictures& block) {
  Json pictures = Json::Array();
  for (const Pictures::Picture& picture : block.pictures) {
    pictures.Append(std::vector<std::string>{picture.png, picture.title, picture.note});
  }
  Json json = Json::Object();
  json.AddNew("block", "pictures").AddNew("title", block.title);
  json.AddNew("pictures", std::move(pictures));
  return json;
}

Json ToPageJson(const Paragraph& paragraph) {
  Json json = Json::Object();
  json.AddNew("block", "text").AddNew("text", paragraph.text);
  return json;
}

Json ToPageJson(const Commands& commands) {
  Json json = Json::Object();
  json.AddNew("block", "commands").AddNew("lines", commands.lines);
  return json;
}

Json ToPageJson(const ChartChoice& choice) {
  Json charts = Json::Array();
  for (const LineChart& chart : choice.charts) charts.Append(ToPageJson(chart));
  Json json = Json::Object();
  json.AddNew("block", "choice").AddNew("names", choice.names);
  json.AddNew("charts", std::move(charts));
  return json;
}

// ---- reading

void CheckPageKeys(const Json& json, std::initializer_list<std::string_view> known) {
  for (const auto& [key, value] : json.Members()) {
    bool found = false;
    for (const std::string_view name : known) found = found || name == key;
    if (!found) throw Error("unknown key \"{}\"", key.substr(0, 80));
  }
}

std::string TextAt(const Json& json, std::string_view key) { return json.At(key).AsString(); }

// What older pages do not say.
bool FlagIn(const Json& json, std::string_view key, bool otherwise) {
  const Json* found = json.Find(key);
  return found ? found->AsBool() : otherwise;
}

std::vector<std::string> TextsOf(const Json& json) {
  std::vector<std::string> texts;
  for (const Json& item : json.Items()) texts.push_back(item.AsString());
  return texts;
}

std::vector<double> NumbersOf(const Json& json) {
  std::vector<double> numbers;
  for (const Json& item : json.Items()) numbers.push_back(item.IsNull() ? NAN : item.AsDouble());
  return numbers;
}

std::vector<std::vector<double>> MatrixOf(const Json& json, size_t rows, size_t columns) {
  std::vector<std::vector<double>> matrix;
  for (const Json& row : json.Items()) {
    matrix.push_back(NumbersOf(row));
    if (matrix.back().size() != columns) {
      throw Error("a row of \"values\" has {} numbers, expected {}", matrix.back().size(), columns);
    }
  }
  if (matrix.size() != rows) {
    throw Error("\"values\" has {} rows, expected {}", matrix.size(), rows);
  }
  return matrix;
}

Axis AxisOf(const Json& json) {
  CheckPageKeys(json, {"title", "unit", "logarithmic", "from_zero"});
  return {TextAt(json, "title"), TextAt(json, "unit"), json.At("logarithmic").AsBool(),
          json.At("from_zero").AsBool()};
}

CurveKind KindOf(const std::string& name) {
  for (int i = 0; i < int(std::size(kKindNames)); ++i) {
    if (name == kKindNames[i]) return CurveKind(i);
  }
  throw Error("unknown kind of curve \"{}\"", name.substr(0, 80));
}

Curve CurveOf(const Json& json) {
  CheckPageKeys(json, {"name", "kind", "x", "y", "low", "high", "style"});
  Curve curve{TextAt(json, "name"),    KindOf(TextAt(json, "kind")), NumbersOf(json.At("x")),
              NumbersOf(json.At("y")), NumbersOf(json.At("low")),    NumbersOf(json.At("high"))};
  curve.style = int(std::clamp<int64_t>(json.At("style").AsInt(), -1, 1 << 20));
  const size_t points = curve.x.size();
  const auto fits = [&](const std::vector<double>& v) { return v.empty() || v.size() == points; };
  if (curve.y.size() != points || !fits(curve.low) || !fits(curve.high)) {
    throw Error("the curve \"{}\" has {} x, {} y, {} low and {} high", curve.name.substr(0, 80),
                points, curve.y.size(), curve.low.size(), curve.high.size());
  }
  return curve;
}

LineChart LineOf(const Json& json) {
  CheckPageKeys(json, {"block", "title", "x", "y", "curves", "caption", "own_legend"});
  LineChart chart{TextAt(json, "title"),
                  AxisOf(json.At("x")),
                  AxisOf(json.At("y")),
                  {},
                  TextAt(json, "caption")};
  for (const Json& curve : json.At("curves").Items()) chart.curves.push_back(CurveOf(curve));
  chart.own_legend = FlagIn(json, "own_legend", true);
  return chart;
}

BarChart BarsOf(const Json& json) {
  CheckPageKeys(json, {"block", "title", "y", "bars", "parts", "values", "caption", "bars_title"});
  BarChart chart{TextAt(json, "title"),
                 AxisOf(json.At("y")),
                 TextsOf(json.At("bars")),
                 TextsOf(json.At("parts")),
                 {},
                 TextAt(json, "caption"),
                 TextAt(json, "bars_title")};
  chart.values = MatrixOf(json.At("values"), chart.parts.size(), chart.bars.size());
  return chart;
}

HeatChart HeatOf(const Json& json) {
  CheckPageKeys(json, {"block", "title", "row_title", "column_title", "rows", "columns", "values",
                       "caption"});
  HeatChart chart{TextAt(json, "title"),        TextAt(json, "row_title"),
                  TextAt(json, "column_title"), TextsOf(json.At("rows")),
                  TextsOf(json.At("columns")),  {},
                  TextAt(json, "caption")};
  chart.values = MatrixOf(json.At("values"), chart.rows.size(), chart.columns.size());
  return chart;
}

PageTable TableOfJson(const Json& json) {
  CheckPageKeys(json, {"block", "title", "header", "rows", "caption", "folded", "sortable",
                       "styles", "bold"});
  PageTable table{TextAt(json, "title"),
                  TextsOf(json.At("header")),
                  {},
                  TextAt(json, "caption"),
                  json.At("folded").AsBool()};
  for (const Json& row : json.At("rows").Items()) {
    table.rows.push_back(TextsOf(row));
    if (table.rows.back().size() != table.header.size()) {
      throw Error("a row of a table has {} cells for {} columns", table.rows.back().size(),
                  table.header.size());
    }
  }
  table.sortable = FlagIn(json, "sortable", false);
  if (const Json* styles = json.Find("styles")) {
    for (const Json& style : styles->Items()) {
      table.styles.push_back(int(std::clamp<int64_t>(style.AsInt(), -1, 1 << 20)));
    }
  }
  if (const Json* bold = json.Find("bold")) {
    for (const Json& cell : bold->Items()) {
      if (cell.Items().size() != 2) throw Error("a cell in \"bold\" is not a row and a column");
      table.bold.push_back({size_t(cell.Items()[0].AsInt()), size_t(cell.Items()[1].AsInt())});
    }
  }
  return table;
}

Figures FiguresOf(const Json& json) {
  CheckPageKeys(json, {"block", "figures"});
  Figures block;
  for (const Json& figure : json.At("figures").Items()) {
    const auto texts = TextsOf(figure);
    if (texts.size() != 3) throw Error("a figure is not a value, a title and a note");
    block.figures.push_back({texts[0], texts[1], texts[2]});
  }
  return block;
}

Pictures PicturesOf(const Json& json) {
  CheckPageKeys(json, {"block", "title", "pictures"});
  Pictures block{.pictures = {}, .title = TextAt(json, "title")};
  for (const Json& picture : json.At("pictures").Items()) {
    const auto texts = TextsOf(picture);
    if (texts.size() != 3) throw Error("a picture is not its bytes, a title and a note");
    block.pictures.push_back({texts[0], texts[1], texts[2]});
  }
  return block;
}

ChartChoice ChoiceOf(const Json& json) {
  CheckPageKeys(json, {"block", "names", "charts"});
  ChartChoice choice{TextsOf(json.At("names")), {}};
  for (const Json& chart : json.At("charts").Items()) choice.charts.push_back(LineOf(chart));
  if (choice.names.size() != choice.charts.size()) {
    throw Error("a choice has {} names and {} charts", choice.names.size(), choice.charts.size());
  }
  return choice;
}

Block BlockOf(const Json& json) {
  const std::string kind = TextAt(json, "block");
  if (kind == "line") return LineOf(json);
  if (kind == "bars") return BarsOf(json);
  if (kind == "heat") return HeatOf(json);
  if (kind == "choice") return ChoiceOf(json);
  if (kind == "table") return TableOfJson(json);
  if (kind == "figures") return FiguresOf(json);
  if (kind == "pictures") return PicturesOf(json);
  if (kind == "text") {
    CheckPageKeys(json, {"block", "text"});
    return Paragraph{TextAt(json, "text")};
  }
  if (kind == "commands") {
    CheckPageKeys(json, {"block", "lines"});
    return Commands{TextsOf(json.At("lines"))};
  }
  throw Error("unknown block \"{}\"", kind.substr(0, 80));
}

Page PageOfJson(const Json& json) {
  CheckPageKeys(json, {"page", "title", "subtitle", "sections"});
  if (const int64_t version = json.At("page").AsInt(); version != kPageVersion) {
    throw Error("is a page of version {}; this program reads version {}", version, kPageVersion);
  }
  Page page{TextAt(json, "title"), TextAt(json, "subtitle"), {}};
  for (const Json& section : json.At("sections").Items()) {
    CheckPageKeys(section, {"title", "blocks", "folded"});
    page.sections.push_back({TextAt(section, "title"), {}, FlagIn(section, "folded", false)});
    for (const Json& block : section.At("blocks").Items()) {
      page.sections.back().blocks.push_back(BlockOf(block));
    }
  }
  return page;
}

}  // namespace

std::string PageJson(const Page& page) {
  Json sections = Json::Array();
  for (const Section& section : page.sections) {
    Json blocks = Json::Array();
    for (const Block& block : section.blocks) {
      blocks.Append(std::visit([](const auto& what) { return ToPageJson(what); }, block));
    }
    Json json = Json::Object();
    json.AddNew("title", section.title).AddNew("blocks", std::move(blocks));
    if (section.folded) json.AddNew("folded", true);
    sections.Append(std::move(json));
  }
  Json json = Json::Object();
  json.AddNew("page", kPageVersion).AddNew("title", page.title).AddNew("subtitle", page.subtitle);
  json.AddNew("sections", std::move(sections));
  return json.Text(1) + "\n";
}

Page ParsePageJson(std::string_view text, std::string_view who) {
  const Json json = ParseJson(text, who);
  try {
    return PageOfJson(json);
  } catch (const Error& error) {
    throw Error("{}: {}", who, error.what());
  }
}

Page ReadPageJson(const std::string& path) {
  return ParsePageJson(ReadFile(path, kMostPageBytes), path);
}

}  // namespace trireme
