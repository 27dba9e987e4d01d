#include "report/plot/ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace trireme {
namespace {

constexpr double kLargest = 1e150;
constexpr double kSmallest = 1e-150;

struct Ends {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
};

Ends EndsOf(std::span<const double> values, bool logarithmic) {
  Ends ends;
  for (const double value : values) {
    if (!Drawable(value, logarithmic)) continue;
    ends.low = std::min(ends.low, value);
    ends.high = std::max(ends.high, value);
  }
  if (ends.low > ends.high) return logarithmic ? Ends{1, 10} : Ends{0, 1};
  return ends;
}

// 1, 2 or 5 times a power of ten, at least `least`.
double RoundStep(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

bool WholeNumbers(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return !Drawable(value) || value == std::round(value); });
}

AxisScale LinearScale(Ends ends, bool from_zero, bool whole, int wanted) {
  if (from_zero && ends.low > 0) ends.low = 0;
  if (from_zero && ends.high < 0) ends.high = 0;
  // Values that are all alike, up to what double can tell apart.
  double size = std::max(std::abs(ends.low), std::abs(ends.high));
  if (size < kSmallest) ends.low = ends.high = size = 0;
  if (ends.high - ends.low <= size * 1e-9) {
    const double around = size > 0 ? size * 0.1 : 1;
    if (ends.low != 0) ends.low -= around;
    ends.high += around;
  }
  const double least = (ends.high - ends.low) / wanted;
  const double step = whole && least < 1 ? 1 : RoundStep(least);
  AxisScale scale;
  const double first = std::floor(ends.low / step + 1e-9);
  const double last = std::ceil(ends.high / step - 1e-9);
  scale.begin = first * step;
  scale.end = last * step;
  for (double i = first; i <= last && scale.ticks.size() < 2 * size_t(wanted); ++i) {
    scale.ticks.push_back(i * step);
  }
  return scale;
}

bool PowersOfTwo(std::span<const double> values) {
  int different = 0;
  double before = 0;
  for (const double value : values) {
    if (!Drawable(value, true)) continue;
    int exponent = 0;
    if (std::frexp(value, &exponent) != 0.5) return false;
    if (value != before) ++different;
    before = value;
  }
  return different > 1;
}

// Ticks at base^i times each factor, where that falls between the ends.
std::vector<double> PowerTicks(Ends ends, double base, int every, std::span<const double> factors) {
  std::vector<double> ticks;
  const int first = int(std::floor(std::log(ends.low) / std::log(base) - 1e-9));
  const int last = int(std::ceil(std::log(ends.high) / std::log(base) + 1e-9));
  for (int i = first; i <= last; ++i) {
    if (i % every != 0) continue;
    for (const double factor : factors) {
      const double tick = factor * std::pow(base, i);
      if (tick >= ends.low * (1 - 1e-9) && tick <= ends.high * (1 + 1e-9)) ticks.push_back(tick);
    }
  }
  return ticks;
}

// The next of 1, 2, 5 times a power of ten, downwards or upwards.
double RoundPower(double value, bool up) {
  const double power = std::pow(10, std::floor(std::log10(value)));
  constexpr double kSteps[] = {1, 2, 5, 10};
  if (up) {
    for (const double step : kSteps) {
      if (step * power >= value * (1 - 1e-9)) return step * power;
    }
    return 10 * power;
  }
  double below = power;
  for (const double step : kSteps) {
    if (step * power <= value * (1 + 1e-9)) below = step * power;
  }
  return below;
}

AxisScale LogarithmicScale(Ends ends, bool powers_of_two, int wanted) {
  if (ends.high / ends.low < 1 + 1e-9) ends = {ends.low / 2, ends.high * 2};
  if (!powers_of_two) ends = {RoundPower(ends.low, false), RoundPower(ends.high, true)};
  const double base = powers_of_two ? 2 : 10;
  const int powers = int(std::log(ends.high / ends.low) / std::log(base)) + 1;
  const int every = std::max(1, (powers + wanted - 1) / wanted);
  constexpr double kOne[] = {1};
  constexpr double kThree[] = {1, 2, 5};
  const bool fine = !powers_of_two && 3 * powers <= 2 * wanted;
  AxisScale scale{ends.low, ends.high, true, {}};
  scale.ticks = PowerTicks(ends, base, every, fine ? std::span<const double>(kThree) : kOne);
  if (scale.ticks.size() < 2 && !powers_of_two) {  // less than a decade: round numbers all the same
    AxisScale linear = LinearScale(ends, false, false, wanted);
    scale.ticks.clear();
    for (const double tick : linear.ticks) {
      if (tick >= ends.low * (1 - 1e-9) && tick <= ends.high * (1 + 1e-9)) {
        scale.ticks.push_back(tick);
      }
    }
  }
  return scale;
}

// Digits behind the point that tell two ticks apart.
int DigitsFor(double step) { return std::clamp(int(std::ceil(-std::log10(step) - 1e-9)), 0, 12); }

std::string ShortText(double value, double step) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  constexpr struct {
    double unit;
    const char* letter;
  } kUnits[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}};
  if (size >= 1e15 || size < 1e-4) {
    std::string text = fmt::format("{:.3g}", value);
    const size_t e = text.find('e');
    if (e == text.npos) return text;
    std::string exponent = text.substr(e + 1);
    const bool negative = exponent[0] == '-';
    exponent.erase(0, exponent.find_first_not_of("+-0"));
    return text.substr(0, e) + (negative ? "e-" : "e") + exponent;
  }
  for (const auto& [unit, letter] : kUnits) {
    const double scaled = unit == 1e4 ? 1e3 : unit;
    if (size < unit) continue;
    return fmt::format("{:.{}f}{}", value / scaled, DigitsFor(std::max(step, 1e-4) / scaled),
                       letter);
  }
  return fmt::format("{:.{}f}", value, DigitsFor(step));
}

// Of 20.0k and 1.50 the zeros say nothing where the number stands alone.
std::string WithoutZeros(std::string text) {
  const size_t point = text.find('.');
  if (point == text.npos || text.find('e') != text.npos) return text;
  size_t end = text.find_first_not_of("0123456789", point + 1);
  if (end == text.npos) end = text.size();
  size_t keep = end;
  while (keep > point + 1 && text[keep - 1] == '0') --keep;
  if (keep == point + 1) keep = point;
  return text.erase(keep, end - keep);
}

}  // namespace

bool Drawable(double value, bool logarithmic) {
  if (!std::isfinite(value) || std::abs(value) > kLargest) return false;
  return !logarithmic || value >= kSmallest;
}

double AxisScale::Place(double value) const {
  if (!logarithmic) return (value - begin) / (end - begin);
  return std::log(value / begin) / std::log(end / begin);
}

void AxisScale::EndAt(std::span<const double> values) {
  const Ends ends = EndsOf(values, logarithmic);
  const bool wide =
      logarithmic ? ends.high / ends.low > 1.01 : ends.high - begin > (end - begin) * 1e-3;
  if (!wide || ends.high > end) return;
  end = ends.high;
  if (logarithmic) begin = std::max(begin, ends.low);
  while (ticks.size() > 1 && ticks.back() > end * (1 + 1e-9)) ticks.pop_back();
  while (ticks.size() > 1 && ticks.front() < begin * (1 - 1e-9) && logarithmic) {
    ticks.erase(ticks.begin());
  }
}

void AxisScale::EndBefore(double limit) {
  if (end <= limit || begin >= limit) return;
  end = limit;
  while (ticks.size() > 1 && ticks.back() > end * (1 + 1e-9)) ticks.pop_back();
}

AxisScale MakeScale(std::span<const double> values, bool logarithmic, bool from_zero, int wanted) {
  wanted = std::max(wanted, 2);
  const Ends ends = EndsOf(values, logarithmic);
  if (logarithmic) return LogarithmicScale(ends, PowersOfTwo(values), wanted);
  return LinearScale(ends, from_zero, WholeNumbers(values), wanted);
}

std::vector<std::string> TickTexts(const AxisScale& scale) {
  std::vector<std::string> texts;
  const auto& ticks = scale.ticks;
  for (size_t i = 0; i < ticks.size(); ++i) {
    double step = std::max(std::abs(ticks[i]), 1e-300);
    if (!scale.logarithmic && ticks.size() > 1) step = ticks[1] - ticks[0];
    if (scale.logarithmic) step *= 1e-2;
    const std::string text = ShortText(ticks[i], step);
    texts.push_back(scale.logarithmic ? WithoutZeros(text) : text);
  }
  return texts;
}

std::string ValueText(double value) {
  if (!std::isfinite(value)) return "-";
  if (value == std::rint(value) && std::abs(value) < 1e15) return FormatCount(int64_t(value));
  if (std::abs(value) >= 1e4 && std::abs(value) < 1e15) return FormatCount(std::llround(value));
  return fmt::format("{:.5g}", value);
}

}  // namespace trireme
