#include "record/page/page_html.h"

#include <algorithm>

#include "record/page/chart_table.h"
#include "record/page/page_style.h"
#include "record/plot/svg.h"
#include "record/plot/svg_parts.h"
#include "record/plot/thin.h"

namespace trireme {
namespace {

constexpr size_t kMostTableRows = 400;
constexpr size_t kMostTableColumns = 60;

// A number stands to the right, so that digits stand below each other.
bool LooksLikeNumber(const std::string& text) {
  if (text.empty() || text == "-") return true;
  const bool begins = std::string_view("+-.0123456789<").find(text[0]) != std::string_view::npos;
  return begins && text.size() <= 24;
}

// Columns of words, by what stands in them.
std::vector<bool> WordColumns(const PageTable& table) {
  std::vector<bool> words(table.header.size(), false);
  for (const auto& row : table.rows) {
    for (size_t c = 0; c < std::min(row.size(), words.size()); ++c) {
      if (!LooksLikeNumber(row[c])) words[c] = true;
    }
  }
  return words;
}

void PutTable(std::string& out, const PageTable& table) {
  const size_t columns = std::min(table.header.size(), kMostTableColumns);
  const auto words = WordColumns(table);
  out += "<div class=\"scroll\"><table><thead><tr>";
  for (size_t c = 0; c < columns; ++c) {
    Put(out, "<th scope=\"col\"{}>{}</th>", words[c] ? " class=\"t\"" : "",
        EscapeHtml(table.header[c]));
  }
  out += "</tr></thead><tbody>";
  const auto rows = ThinRows(table.rows.size(), kMostTableRows);
  for (const size_t r : rows) {
    out += "<tr>";
    for (size_t c = 0; c < std::min(columns, table.rows[r].size()); ++c) {
      Put(out, "<td{}>{}</td>", words[c] ? " class=\"t\"" : "", EscapeHtml(table.rows[r][c]));
    }
    out += "</tr>\n";
  }
  out += "</tbody></table></div>";
  std::string said = table.caption;
  if (rows.size() < table.rows.size()) {
    said +=
        fmt::format("{}{} of {} rows", said.empty() ? "" : "; ", rows.size(), table.rows.size());
  }
  if (columns < table.header.size()) {
    said +=
        fmt::format("{}{} of {} columns", said.empty() ? "" : "; ", columns, table.header.size());
  }
  if (!said.empty()) Put(out, "<p class=\"caption\">{}</p>", EscapeHtml(said));
}

// Begins the figure; `x` names what the mouse shows first.
void OpenFigure(std::string& out, const std::string& title, const std::string& x) {
  Put(out, "<figure class=\"chart\" data-x=\"{}\"><h3>{}</h3>", EscapeHtml(x), EscapeHtml(title));
}

void CloseFigure(std::string& out, const std::string& caption, const PageTable& numbers) {
  if (!caption.empty()) Put(out, "<figcaption>{}</figcaption>", EscapeHtml(caption));
  out += "<details><summary>as a table</summary>";
  PutTable(out, numbers);
  out += "</details></figure>\n";
}

void PutLegendEntry(std::string& out, size_t number, const std::string& swatch,
                    const std::string& name) {
  Put(out, "<li><button type=\"button\" aria-pressed=\"true\" data-s=\"{}\">{}{}</button></li>",
      number, swatch, EscapeHtml(name));
}

void PutBlock(std::string& out, const LineChart& chart) {
  OpenFigure(out, chart.title, AxisText(chart.x));
  out += "<ul class=\"legend\">";
  for (size_t i = 0; i < chart.curves.size(); ++i) {
    PutLegendEntry(out, i, CurveSwatch(chart, i), chart.curves[i].name);
  }
  out += "</ul>" + LineSvg(chart);
  CloseFigure(out, chart.caption, TableOf(chart));
}

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

void PutBlock(std::string& out, const ChartChoice& choice) {
  out += "<div class=\"choice\"><div class=\"tabs\" role=\"group\" aria-label=\"over\">";
  for (size_t i = 0; i < choice.names.size(); ++i) {
    Put(out, "<button type=\"button\" aria-pressed=\"{}\">{}</button>", i == 0,
        EscapeHtml(choice.names[i]));
  }
  out += "</div>";
  for (size_t i = 0; i < choice.charts.size(); ++i) {
    Put(out, "<div class=\"of{}\">", i == 0 ? "" : " off");
    PutBlock(out, choice.charts[i]);
    out += "</div>";
  }
  out += "</div>\n";
}

// Few short columns: stands beside a chart.
bool IsNarrow(const PageTable& table) {
  size_t width = 0;
  for (size_t c = 0; c < table.header.size(); ++c) {
    size_t widest = table.header[c].size();
    for (const auto& row : table.rows) {
      if (c < row.size()) widest = std::max(widest, row[c].size());
    }
    width += widest + 4;
  }
  return width < 60 && table.rows.size() <= 40;
}

void PutBlock(std::string& out, const PageTable& table) {
  if (table.folded) {
    Put(out, "<details class=\"panel full\"><summary>{}</summary>", EscapeHtml(table.title));
    PutTable(out, table);
    out += "</details>\n";
    return;
  }
  out += IsNarrow(table) ? "<div class=\"panel\">" : "<div class=\"panel full\">";
  if (!table.title.empty()) Put(out, "<h3>{}</h3>", EscapeHtml(table.title));
  PutTable(out, table);
  out += "</div>\n";
}

void PutBlock(std::string& out, const Paragraph& paragraph) {
  Put(out, "<p class=\"full\" style=\"margin:0\">{}</p>\n", EscapeHtml(paragraph.text));
}

void PutBlock(std::string& out, const Commands& commands) {
  out += "<div class=\"panel full\"><button type=\"button\" class=\"copy\">copy</button><pre>";
  for (const std::string& line : commands.lines) out += EscapeHtml(line) + "\n";
  out += "</pre></div>\n";
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
  for (const Section& section : page.sections) {
    out += "<section>";
    if (!section.title.empty()) Put(out, "<h2>{}</h2>", EscapeHtml(section.title));
    out += "<div class=\"blocks\">\n";
    for (const Block& block : section.blocks) {
      std::visit([&](const auto& what) { PutBlock(out, what); }, block);
    }
    out += "</div></section>\n";
  }
  return out;
}

std::string PageHtml(const Page& page) { return WholePage(page, nullptr); }

std::string LivePageHtml(const Page& page, const LiveState& state) {
  return WholePage(page, &state);
}

}  // namespace trireme
