#include "report/plot/svg_parts.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/text.h"
#include "report/plot/svg.h"

namespace trireme {
namespace {

// The character at `i` and its bytes; U+FFFD and one byte where it is none.
struct Character {
  uint32_t point = 0xFFFD;
  size_t bytes = 1;
};

Character CharacterAt(std::string_view text, size_t i) {
  const auto lead = uint8_t(text[i]);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : lead >= 0xC0 ? 2 : 1;
  if (bytes == 1 || !IsUtf8(text.substr(i, bytes))) return {};
  uint32_t point = lead & (0x7Fu >> bytes);
  for (size_t k = 1; k < bytes; ++k) point = point << 6 | (uint8_t(text[i + k]) & 0x3F);
  return {point, bytes};
}

// In parts of the text's size; those of common fonts, rounded up.
double WidthOf(uint32_t point) {
  if (point >= 0x1100) return 1.05;
  if (point >= 0x80) return 0.7;
  const char c = char(point);
  if (std::string_view("il.,:;|!'j").find(c) != std::string_view::npos) return 0.36;
  if (std::string_view("mwMW@%").find(c) != std::string_view::npos) return 0.95;
  if (c >= 'A' && c <= 'Z') return 0.72;
  return 0.6;
}

bool Invisible(uint32_t point) {
  const bool control = (point < 0x20 && point != '\n' && point != '\t') || point == 0x7F ||
                       (point >= 0x80 && point < 0xA0);
  // Marks that turn the direction of what follows: a name must not rearrange its neighbours.
  const bool turns = (point >= 0x202A && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069);
  return control || turns;
}

}  // namespace

std::string EscapeHtml(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size();) {
    const Character c = CharacterAt(text, i);
    if (c.point == '&') {
      out += "&amp;";
    } else if (c.point == '<') {
      out += "&lt;";
    } else if (c.point == '>') {
      out += "&gt;";
    } else if (c.point == '"') {
      out += "&quot;";
    } else if (c.point == '\'') {
      out += "&#39;";
    } else if (c.point == 0xFFFD || Invisible(c.point)) {
      out += "\xEF\xBF\xBD";
    } else {
      out.append(text.substr(i, c.bytes));
    }
    i += c.bytes;
  }
  return out;
}

double TextWidth(std::string_view text, double size) {
  double width = 0;
  for (size_t i = 0; i < text.size();) {
    const Character c = CharacterAt(text, i);
    width += WidthOf(c.point) * size;
    i += c.bytes;
  }
  return width;
}

std::string ShortenText(std::string_view text, double width, double size, bool middle) {
  if (TextWidth(text, size) <= width) return std::string(text);
  std::vector<std::string_view> characters;
  for (size_t i = 0; i < text.size() && characters.size() < 4096;) {
    const size_t bytes = CharacterAt(text, i).bytes;
    characters.push_back(text.substr(i, bytes));
    i += bytes;
  }
  const double room = width - 1.05 * size;
  std::string head, tail;
  double used = 0;
  for (size_t front = 0, back = characters.size(); front < back;) {
    const bool from_back = middle && front > characters.size() - back;
    const std::string_view next = from_back ? characters[--back] : characters[front++];
    used += TextWidth(next, size);
    if (used > room) break;
    if (from_back) {
      tail.insert(0, next);
    } else {
      head += next;
    }
  }
  return head + "\xE2\x80\xA6" + tail;
}

std::string AxisText(const Axis& axis) {
  return axis.unit.empty() ? axis.title : fmt::format("{} ({})", axis.title, axis.unit);
}

std::string Px(double value) {
  const double rounded = std::round(value * 10) / 10;
  return fmt::format("{:g}", rounded == 0 ? 0.0 : rounded);
}

std::string SvgOpen(std::string_view kind, std::string_view title, double height) {
  return fmt::format("<svg class=\"plot {}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"",
                     kind, Px(kChartWidth), Px(height), EscapeHtml(title));
}

void PutYAxis(std::string& out, const PlotBox& box, const AxisScale& scale, const Axis& axis) {
  const std::string title = ShortenText(AxisText(axis), kChartWidth - 12, kTextSize);
  Put(out, "<text class=\"axis y\" x=\"4\" y=\"13\">{}</text>", EscapeHtml(title));
  const auto texts = TickTexts(scale);
  for (size_t i = 0; i < texts.size(); ++i) {
    const double y = box.bottom() - scale.Place(scale.ticks[i]) * box.height;
    Put(out, "<path class=\"grid\" d=\"M{},{}H{}\"/>", Px(box.left), Px(y), Px(box.right()));
    Put(out, "<text class=\"tick e\" x=\"{}\" y=\"{}\">{}</text>", Px(box.left - 6), Px(y + 4.5),
        EscapeHtml(texts[i]));
  }
}

std::vector<Label> FittingLabels(const std::vector<Label>& labels, double gap) {
  for (size_t every = 1; every < labels.size(); ++every) {
    bool fits = true;
    const Label* before = nullptr;
    for (size_t i = 0; i < labels.size() && fits; i += every) {
      const double half = TextWidth(labels[i].text, kTextSize) / 2;
      if (before) {
        const double end = before->at + TextWidth(before->text, kTextSize) / 2;
        fits = labels[i].at - half >= end + gap;
      }
      before = &labels[i];
    }
    if (!fits) continue;
    std::vector<Label> kept;
    for (size_t i = 0; i < labels.size(); i += every) kept.push_back(labels[i]);
    return kept;
  }
  if (labels.empty()) return {};
  return {labels.front()};
}

PlotBox BoxFor(const AxisScale& y, double below) {
  double widest = 0;
  for (const std::string& text : TickTexts(y)) {
    widest = std::max(widest, TextWidth(text, kTextSize));
  }
  PlotBox box;
  box.left = std::min(widest + 10, kChartWidth / 3);
  box.top = 30;
  box.width = kChartWidth - box.left - 16;
  box.height = kChartHeight - box.top - below;
  return box;
}

}  // namespace trireme
