#include "report/page/table_html.h"

#include <algorithm>
#include <set>
#include <utility>

#include "report/plot/decimate.h"
#include "report/plot/svg.h"
#include "report/plot/svg_parts.h"

namespace trireme {
namespace {

constexpr size_t kMostTableRows = 400;
constexpr size_t kMostTableColumns = 60;
constexpr size_t kTallTableRows = 16;  // more are scrolled: what they stand for is to be seen, too

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

// The attributes of a table's cells.
class CellClasses {
 public:
  explicit CellClasses(const PageTable& table) : words_(WordColumns(table)) {
    for (const PageTable::Cell& cell : table.bold) bold_.insert({cell.row, cell.column});
  }
  std::string Of(size_t column) const { return words_[column] ? " class=\"t\"" : ""; }
  std::string Of(size_t row, size_t column) const {
    if (!bold_.contains({row, column})) return Of(column);
    return words_[column] ? " class=\"t b\"" : " class=\"b\"";
  }

 private:
  std::vector<bool> words_;
  std::set<std::pair<size_t, size_t>> bold_;
};

void PutRow(std::string& out, const PageTable& table, size_t r, size_t columns,
            const CellClasses& classes) {
  const bool drawn = r < table.styles.size() && table.styles[r] >= 0;
  out += drawn ? fmt::format("<tr data-r=\"{}\">", table.styles[r]) : "<tr>";
  for (size_t c = 0; c < std::min(columns, table.rows[r].size()); ++c) {
    Put(out, "<td{}>", classes.Of(r, c));
    if (drawn && c == 0) {
      const bool other = table.styles[r] >= kOtherStyles;
      out += StyleSwatch(table.styles[r], other ? CurveKind::kOther : CurveKind::kMeasured);
    }
    out += EscapeHtml(table.rows[r][c]) + "</td>";
  }
  out += "</tr>\n";
}

}  // namespace

void PutTable(std::string& out, const PageTable& table) {
  const size_t columns = std::min(table.header.size(), kMostTableColumns);
  const CellClasses classes(table);
  const bool headed = std::any_of(table.header.begin(), table.header.end(),
                                  [](const std::string& name) { return !name.empty(); });
  const bool tall = table.sortable && table.rows.size() > kTallTableRows;
  Put(out, "<div class=\"scroll{}\" tabindex=\"0\"><table{}><thead>", tall ? " tall" : "",
      table.sortable ? " class=\"sortable\"" : "");
  if (headed) out += "<tr>";
  for (size_t c = 0; headed && c < columns; ++c) {
    const std::string name = EscapeHtml(table.header[c]);
    Put(out, "<th scope=\"col\"{}>{}</th>", classes.Of(c),
        table.sortable ? fmt::format("<button type=\"button\" class=\"sort\">{}</button>", name)
                       : name);
  }
  out += headed ? "</tr></thead><tbody>" : "</thead><tbody>";
  const auto rows = DecimateRows(table.rows.size(), kMostTableRows);
  for (const size_t r : rows) PutRow(out, table, r, columns, classes);
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

}  // namespace trireme
