#include "report/page/page_html.h"

#include <algorithm>
#include <map>
#include <set>

#include "report/page/chart_table.h"
#include "report/page/page_style.h"
#include "report/page/table_html.h"
#include "report/plot/decimate.h"
#include "report/plot/svg.h"
#include "report/plot/svg_parts.h"

namespace trireme {
namespace {

// Begins the figure; `x` names what the mouse shows first.
void OpenFigure(std::string& out, const std::string& title, const std::string& x) {
  Put(out, "<figure class=\"chart\" data-x=\"{}\"><h3>{}</h3>", EscapeHtml(x), EscapeHtml(title));
}

void CloseFigure(std::string& out, const std::string& caption, const PageTable& numbers) {
  if (!caption.empty()) Put(out, "<figcaption>{}</figcaption>", EscapeHtml(caption));
  if (numbers.header.empty()) {
    out += "</figure>\n";
    return;
  }
  out += "<details><summary>as a table</summary>";
  PutTable(out, numbers);
  out += "</details></figure>\n";
}

void PutLegendEntry(std::string& out, size_t number, const std::string& swatch,
                    const std::string& name) {
  Put(out, "<li><button type=\"button\" aria-pressed=\"true\" data-s=\"{}\">{}{}</button></li>",
      number, swatch, EscapeHtml(name));
}

void PutLineChart(std::string& out, const LineChart& chart, bool with_table) {
  OpenFigure(out, chart.title, AxisText(chart.x));
  if (chart.own_legend) {
    out += "<ul class=\"legend\">";
    for (size_t i = 0; i < chart.curves.size(); ++i) {
      PutLegendEntry(out, i, CurveSwatch(chart, i), chart.curves[i].name);
    }
    out += "</ul>";
  }
  out += LineSvg(chart);
  CloseFigure(out, chart.caption, with_table ? TableOf(chart) : PageTable{});
}

void PutBlock(std::string& out, const LineChart& chart) { PutLineChart(out, chart, true); }

void PutBlock(std::string& out, const BarChart& chart) {
  OpenFigure(out, chart.title, chart.bars_title);
  out += "<ul class=\"legend\">";
  for (size_t i = 0; i < chart.parts.size(); ++i) {
    PutLegendEntry(out, i, PartSwatch(i), chart.parts[i]);
  }
  out += "</ul>" + BarSvg(chart);
  CloseFigure(out, chart.caption, TableOf(chart));
}

void PutBlock(std::string& out, const HeatChart& chart) {
  double most = 0;
  for (const auto& row : chart.values) {
    for (const double value : row) {
      if (Drawable(value)) most = std::max(most, value);
    }
  }
  OpenFigure(out, chart.title, chart.column_title);
  Put(out, "<ul class=\"legend\"><li><span>0 {} {}</span></li></ul>", HeatSwatch(),
      ValueText(most));
  out += HeatSvg(chart);
  CloseFigure(out, chart.caption, TableOf(chart));
}

// Which of its charts is seen is chosen above the section. Of many curves the table of one is
// enough: the values are the same.
void PutBlock(std::string& out, const ChartChoice& choice) {
  std::string names;
  for (const std::string& name : choice.names) names += (names.empty() ? "" : "\n") + name;
  Put(out, "<div class=\"choice\" data-names=\"{}\">", EscapeHtml(names));
  for (size_t i = 0; i < choice.charts.size(); ++i) {
    Put(out, "<div class=\"of{}\">", i == 0 ? "" : " off");
    PutLineChart(out, choice.charts[i], i == 0 || choice.charts[i].own_legend);
    out += "</div>";
  }
  out += "</div>\n";
}

void PutBlock(std::string& out, const PageTable& table) {
  if (table.folded) {
    Put(out, "<details class=\"panel\"><summary>{}</summary>", EscapeHtml(table.title));
    PutTable(out, table);
    out += "</details>\n";
    return;
  }
  out += IsNarrow(table) ? "<div class=\"panel narrow\">" : "<div class=\"panel\">";
  if (!table.title.empty()) Put(out, "<h3>{}</h3>", EscapeHtml(table.title));
  PutTable(out, table);
  out += "</div>\n";
}

void PutBlock(std::string& out, const Paragraph& paragraph) {
  Put(out, "<p class=\"said\">{}</p>\n", EscapeHtml(paragraph.text));
}

void PutBlock(std::string& out, const Commands& commands) {
  out += "<div class=\"panel\"><button type=\"button\" class=\"copy\">copy</button><pre>";
  for (const std::string& line : commands.lines) out += EscapeHtml(line) + "\n";
  out += "</pre></div>\n";
}

void PutBlock(std::string& out, const Figures& block) {
  out += "<dl class=\"figures\">";
  for (const Figures::Figure& figure : block.figures) {
    Put(out, "<div><dt>{}</dt><dd>{}</dd>", EscapeHtml(figure.title), EscapeHtml(figure.value));
    if (!figure.note.empty()) Put(out, "<dd class=\"note\">{}</dd>", EscapeHtml(figure.note));
    out += "</div>";
  }
  out += "</dl>\n";
}

void PutBlock(std::string& out, const Pictures& block) {
  out += "<div class=\"panel\">";
  if (!block.title.empty()) Put(out, "<h3>{}</h3>", EscapeHtml(block.title));
  out += "<ul class=\"pictures\">";
  for (const Pictures::Picture& picture : block.pictures) {
    Put(out, "<li><img alt=\"\" src=\"data:image/png;base64,{}\"><b>{}</b>",
        EscapeHtml(picture.png), EscapeHtml(picture.title));
    if (!picture.note.empty()) Put(out, "<span>{}</span>", EscapeHtml(picture.note));
    out += "</li>";
  }
  out += "</ul></div>\n";
}

// Cards that stand beside each other, in sixths of the width: rows of three, the last ones of two,
// so that nothing stays empty.
bool IsWide(const Block& block) {
  if (const auto* table = std::get_if<PageTable>(&block)) {
    return table->folded || !IsNarrow(*table);
  }
  return std::holds_alternative<Paragraph>(block) || std::holds_alternative<Commands>(block) ||
         std::holds_alternative<Figures>(block) || std::holds_alternative<Pictures>(block);
}

std::vector<std::string> WidthsOf(const std::vector<Block>& blocks) {
  std::vector<std::string> widths;
  for (size_t begin = 0; begin < blocks.size();) {
    if (IsWide(blocks[begin])) {
      widths.emplace_back("full");
      ++begin;
      continue;
    }
    size_t end = begin;
    while (end < blocks.size() && !IsWide(blocks[end])) ++end;
    const size_t count = end - begin;
    const size_t halves = count == 1 ? 0 : count % 3 == 1 ? 4 : count % 3 == 2 ? 2 : 0;
    for (size_t i = 0; i < count; ++i) {
      std::string width = count == 1 ? "w6" : i + halves >= count ? "w3" : "w2";
      if (count % 2 == 1 && i + 1 == count) width += " lone";  // where there are two in a row
      widths.push_back(std::move(width));
    }
    begin = end;
  }
  return widths;
}

// All line charts of a section, those inside choices, too.
std::vector<const LineChart*> LineChartsOf(const Section& section) {
  std::vector<const LineChart*> charts;
  for (const Block& block : section.blocks) {
    if (const auto* chart = std::get_if<LineChart>(&block)) charts.push_back(chart);
    const auto* choice = std::get_if<ChartChoice>(&block);
    for (size_t i = 0; choice && i < choice->charts.size(); ++i) {
      charts.push_back(&choice->charts[i]);
    }
  }
  return charts;
}

void PutTabs(std::string& out, const Section& section) {
  std::vector<std::string> names;
  for (const Block& block : section.blocks) {
    const auto* choice = std::get_if<ChartChoice>(&block);
    for (size_t i = 0; choice && i < choice->names.size(); ++i) {
      if (std::find(names.begin(), names.end(), choice->names[i]) == names.end()) {
        names.push_back(choice->names[i]);
      }
    }
  }
  if (names.empty()) return;
  out += "<div class=\"tabs\" role=\"group\" aria-label=\"over\"><span>over</span>";
  for (const std::string& name : names) {
    Put(out, "<button type=\"button\" aria-pressed=\"{}\">{}</button>", &name == &names[0],
        EscapeHtml(name));
  }
  out += "</div>\n";
}

// One for all charts that have none of their own: those that stand out by name, the rest together.
void PutCommonLegend(std::string& out, const Section& section) {
  std::map<int, std::string> names;
  std::set<int> others;
  for (const LineChart* chart : LineChartsOf(section)) {
    for (size_t i = 0; !chart->own_legend && i < chart->curves.size(); ++i) {
      const Curve& curve = chart->curves[i];
      if (curve.kind == CurveKind::kOther) {
        others.insert(curve.style);
      } else {
        names.emplace(curve.style, curve.name);
      }
    }
  }
  if (names.empty()) return;
  out += "<ul class=\"legend common\">";
  for (const auto& [style, name] : names) {
    Put(out, "<li><button type=\"button\" aria-pressed=\"true\" data-r=\"{}\">{}{}</button></li>",
        style, StyleSwatch(std::max(style, 0), CurveKind::kMeasured), EscapeHtml(name));
  }
  if (!others.empty()) {
    Put(out,
        "<li><button type=\"button\" aria-pressed=\"true\" data-r=\"others\">{}{} others"
        "</button></li>",
        StyleSwatch(kOtherStyles, CurveKind::kOther), others.size());
  }
  out += "</ul>\n";
}

// Beside a chart that stands alone there is room for its table.
void OpenTables(std::string& block) {
  constexpr std::string_view kClosed = "<details><summary>as a table";
  for (size_t at = 0; (at = block.find(kClosed, at)) != block.npos; at += kClosed.size()) {
    block.insert(at + 8, " open");
  }
}

void PutSection(std::string& out, const Section& section) {
  out += section.folded ? "<section><details class=\"fold\"><summary>" : "<section>";
  if (!section.title.empty()) Put(out, "<h2>{}</h2>", EscapeHtml(section.title));
  if (section.folded) out += "</summary>";
  PutTabs(out, section);
  PutCommonLegend(out, section);
  out += "<div class=\"blocks\">\n";
  const auto widths = WidthsOf(section.blocks);
  for (size_t i = 0; i < section.blocks.size(); ++i) {
    std::string block;
    std::visit([&](const auto& what) { PutBlock(block, what); }, section.blocks[i]);
    if (widths[i].starts_with("w6")) OpenTables(block);
    Put(out, "<div class=\"{}\">{}</div>", widths[i], block);
  }
  out += section.folded ? "</div></details></section>\n" : "</div></section>\n";
}

std::string WholePage(const Page& page, const LiveState* live) {
  std::string out =
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">"
      "<link rel=\"icon\" href=\"";
  out += PageIcon();
  out += "\">";
  // Even if a text got through as markup, it could neither load nor send anything.
  Put(out,
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'; script-src 'unsafe-inline'; img-src data:{}; base-uri 'none'; form-action "
      "'none'\">",
      live ? "; connect-src 'self'" : "");
  Put(out, "<title>{}</title><style>", EscapeHtml(live ? live->title : page.title));
  out += PageStyle();
  Put(out, "</style></head>\n<body>{}<header><h1>{}</h1>", PagePatterns(), EscapeHtml(page.title));
  if (!page.subtitle.empty()) Put(out, "<p class=\"sub\">{}</p>", EscapeHtml(page.subtitle));
  if (live) Put(out, "<p class=\"sub\" id=\"live\" role=\"status\">{}</p>", EscapeHtml(live->text));
  out += "</header>\n<main>" + PageContent(page) + "</main>\n<div id=\"tip\"></div><script>";
  out += PageScript();
  if (live) out += LiveScript();
  return out + "</script></body></html>\n";
}

}  // namespace

std::string PageContent(const Page& page) {
  std::string out;
  for (const Section& section : page.sections) PutSection(out, section);
  return out;
}

std::string PageHtml(const Page& page) { return WholePage(page, nullptr); }

std::string LivePageHtml(const Page& page, const LiveState& state) {
  return WholePage(page, &state);
}

}  // namespace trireme
