#include "data/csv_field.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/text.h"

namespace trireme {

std::string CsvField(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string_view TrimField(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::optional<float> ParseField(std::string_view text, bool decimal_comma) {
  text = TrimField(text);
  std::string point;
  if (decimal_comma && text.find('.') == text.npos && text.find(',') != text.npos) {
    point = text;
    point[point.find(',')] = '.';
    text = point;
  }
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  const float narrow = static_cast<float>(value);
  if (!std::isfinite(narrow)) return std::nullopt;
  return narrow;
}

bool IsMissing(std::string_view text) {
  text = TrimField(text);
  if (text.size() > 4) return false;
  const std::string word = ToLower(text);
  constexpr std::string_view kWords[] = {"", "?", "na", "n/a", "nan", "null", "none"};
  return std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords);
}

bool LooksLikeDate(std::string_view text) {
  text = TrimField(text);
  const auto digits = [&](size_t most) {
    size_t count = 0;
    while (count < text.size() && count < most && std::isdigit((unsigned char)(text[count])))
      ++count;
    text.remove_prefix(count);
    return count;
  };
  if (digits(4) == 0 || text.empty()) return false;
  const char between = text[0];
  if (between != '-' && between != '/' && between != '.') return false;
  text.remove_prefix(1);
  if (digits(2) == 0 || !text.starts_with(between)) return false;
  text.remove_prefix(1);
  return digits(4) != 0 && (text.empty() || text[0] == ' ' || text[0] == 'T');
}

std::string QuoteField(std::string_view text) {
  constexpr size_t kMost = 40;
  size_t end = std::min(text.size(), kMost);
  const bool utf8 = IsUtf8(text);
  while (utf8 && end < text.size() && (text[end] & 0xc0) == 0x80) --end;  // no half characters
  std::string shown;
  for (const char c : text.substr(0, end)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < ' ' || byte == 0x7f) {
      shown += '?';
    } else if (byte >= 0x80 && !utf8) {
      shown += fmt::format("\\x{:02x}", byte);
    } else {
      shown += c;
    }
  }
  return "'" + shown + (end < text.size() ? "...'" : "'");
}

std::string QuoteFields(std::span<const std::string> texts) {
  constexpr size_t kNamed = 12;
  std::string shown;
  for (const std::string& text : texts.first(std::min(texts.size(), kNamed))) {
    shown += (shown.empty() ? "" : ", ") + QuoteField(text);
  }
  if (texts.size() > kNamed) shown += fmt::format(" and {} more", texts.size() - kNamed);
  return shown;
}

std::string FieldHint(std::string_view text) {
  std::string point(text);
  if (std::count(point.begin(), point.end(), ',') == 1) {
    point[point.find(',')] = '.';
    if (ParseField(point)) {
      return "; decimal commas need another separator, such as a semicolon: write " + point;
    }
  }
  return "";
}

}  // namespace trireme
