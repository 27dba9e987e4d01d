#include "study/scaling_law.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/assert.h"
#include "base/error.h"

namespace trireme {
namespace {

constexpr int kTerms = ScalingLaw::kTerms;
constexpr double kNinetyPercent = 1.645;  // deviations of a normal distribution, both sides
using Terms = std::array<double, kTerms>;
using Matrix = std::array<Terms, kTerms>;

Terms BasisAt(double n) { return {1, 1 / n, (n - 1) / (n * n)}; }

double Value(const Terms& terms, double n) {
  const Terms basis = BasisAt(n);
  double value = 0;
  for (int i = 0; i < kTerms; ++i) value += terms[i] * basis[i];
  return value;
}

// The inverse over the rows and columns of `used`; zero elsewhere. Nothing if there is none.
std::optional<Matrix> InverseOf(const Matrix& a, const std::vector<int>& used) {
  const size_t size = used.size();
  std::vector<std::vector<double>> rows(size, std::vector<double>(2 * size));
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < size; ++j) rows[i][j] = a[used[i]][used[j]];
    rows[i][size + i] = 1;
  }
  for (size_t c = 0; c < size; ++c) {
    const auto pivot =
        std::max_element(rows.begin() + ptrdiff_t(c), rows.end(),
                         [&](auto& x, auto& y) { return std::abs(x[c]) < std::abs(y[c]); });
    if (std::abs((*pivot)[c]) < 1e-12 * std::abs(a[used[c]][used[c]])) return {};
    std::swap(rows[c], *pivot);
    const double scale = rows[c][c];
    for (double& x : rows[c]) x /= scale;
    for (size_t r = 0; r < size; ++r) {
      const double factor = rows[r][c];
      if (r == c || factor == 0) continue;
      for (size_t k = 0; k < 2 * size; ++k) rows[r][k] -= factor * rows[c][k];
    }
  }
  Matrix inverse = {};
  for (size_t i = 0; i < size; ++i) {
    for (size_t j = 0; j < size; ++j) inverse[used[i]][used[j]] = rows[i][size + j];
  }
  return inverse;
}

struct Candidate {
  Terms terms = {};
  Matrix inverse = {};
  double squares = 0;
  size_t used = 0;
};

// Least squares of relative errors with some of the terms; nothing if one would be negative.
std::optional<Candidate> Try(std::span<const double> n, std::span<const double> seconds,
                             const std::vector<int>& used) {
  Matrix a = {};
  Terms b = {};
  for (size_t k = 0; k < n.size(); ++k) {
    const Terms basis = BasisAt(n[k]);
    for (int i = 0; i < kTerms; ++i) {
      b[i] += basis[i] / seconds[k];
      for (int j = 0; j < kTerms; ++j) a[i][j] += basis[i] * basis[j] / (seconds[k] * seconds[k]);
    }
  }
  const auto inverse = InverseOf(a, used);
  if (!inverse) return {};
  Candidate candidate{.inverse = *inverse, .used = used.size()};
  for (int i = 0; i < kTerms; ++i) {
    for (int j = 0; j < kTerms; ++j) candidate.terms[i] += (*inverse)[i][j] * b[j];
    if (candidate.terms[i] < 0) return {};
  }
  for (size_t k = 0; k < n.size(); ++k) {
    const double error = Value(candidate.terms, n[k]) / seconds[k] - 1;
    candidate.squares += error * error;
  }
  return candidate;
}

double FloorOf(const PublishedTable& table) {
  if (table.kind != PublishedTable::Kind::kLoaders) return 0;
  const PublishedTable& devices = FindPublished("ddp-gpus");
  return *std::min_element(devices.seconds.begin(), devices.seconds.end());
}

std::string Assumes(const PublishedTable& table, double floor) {
  std::string text = "T(n) = serial + parallel / n";
  if (table.kind == PublishedTable::Kind::kNodes) {
    text +=
        " + exchange (n - 1) / n^2: a fixed part, work that is shared evenly, and gradients summed "
        "over a ring in each step, where the number of steps falls as 1 / n";
  } else {
    text += ": a fixed part, and work that is shared evenly";
  }
  if (floor > 0) {
    text += fmt::format(
        "; never below {}, the time that something else takes{}", FormatClock(floor),
        table.kind == PublishedTable::Kind::kLoaders
            ? " (the shortest time of the same node in table ddp-gpus; it is also the published "
              "time with 16 loader workers, so there the lower end is known, not predicted)"
            : "");
  }
  return text + ". The interval covers nine of ten measurements, if that holds.";
}

}  // namespace

double ScalingLaw::At(double n) const {
  return std::max(floor, Value({serial, parallel, exchange}, n));
}

ScalingFit FitScaling(std::span<const double> n, std::span<const double> seconds, bool exchange,
                      double floor) {
  TRIREME_ASSERT(n.size() == seconds.size());
  std::optional<Candidate> best;
  for (unsigned set = 1; set < (exchange ? 8u : 4u); ++set) {
    std::vector<int> used;
    for (int i = 0; i < kTerms; ++i) {
      if (set >> i & 1) used.push_back(i);
    }
    if (used.size() > n.size()) continue;
    const auto candidate = Try(n, seconds, used);
    if (candidate && (!best || candidate->squares < best->squares - 1e-12)) best = candidate;
  }
  if (!best) throw Error("no law of this form fits these times");
  const double freedom = double(n.size() - best->used);
  ScalingFit fit;
  fit.largest = *std::max_element(n.begin(), n.end());
  fit.law = {best->terms[0], best->terms[1], best->terms[2], floor};
  fit.noise = std::max(kLeastNoise, freedom > 0 ? std::sqrt(best->squares / freedom) : 0.0);
  for (int i = 0; i < kTerms; ++i) {
    for (int j = 0; j < kTerms; ++j) {
      fit.covariance[i][j] = best->inverse[i][j] * fit.noise * fit.noise;
    }
  }
  return fit;
}

Predicted Predict(const ScalingFit& fit, double n) {
  const double last = fit.largest;
  const std::optional<Predicted> known =
      n > last && last >= 2 ? std::optional(Predict(fit, last)) : std::nullopt;
  const Terms basis = BasisAt(n);
  const double middle = Value({fit.law.serial, fit.law.parallel, fit.law.exchange}, n);
  double variance = middle * middle * fit.noise * fit.noise;  // of the measurement itself
  for (int i = 0; i < kTerms; ++i) {
    for (int j = 0; j < kTerms; ++j) variance += basis[i] * fit.covariance[i][j] * basis[j];
  }
  const double half = kNinetyPercent * std::sqrt(std::max(0.0, variance));
  double low = std::max(0.0, middle - half), high = middle + half;
  if (known) {
    low = std::min(middle, std::max(low, known->low * last / n));
    high = std::max(middle, std::min(high, known->high));
  }
  const double floor = fit.law.floor;
  return {std::max(floor, middle), std::max(floor, low), std::max(floor, high)};
}

PublishedForecast ForecastPublished(const PublishedTable& table, std::span<const double> fit,
                                    double to, double floor) {
  if (table.kind == PublishedTable::Kind::kNames) {
    throw UsageError("--published {}: times cannot be predicted over {}", table.name, table.axis);
  }
  std::vector<double> seconds;
  for (const double n : fit) {
    const auto at = std::find(table.x.begin(), table.x.end(), n);
    if (at == table.x.end()) {
      throw UsageError("--fit {:g}: table {} has no such point", n, table.name);
    }
    seconds.push_back(table.seconds[size_t(at - table.x.begin())]);
  }
  if (fit.size() < 2) throw UsageError("--fit needs at least two points");
  if (floor < 0) floor = FloorOf(table);
  PublishedForecast forecast{.table = &table, .fitted = {fit.begin(), fit.end()}};
  forecast.fit = FitScaling(fit, seconds, table.kind == PublishedTable::Kind::kNodes, floor);
  forecast.assumes = Assumes(table, floor);
  std::vector<double> at = table.x;
  for (double n = 1; n <= to; n *= 2) at.push_back(n);
  at.push_back(to);
  std::sort(at.begin(), at.end());
  at.erase(std::unique(at.begin(), at.end()), at.end());
  for (const double n : at) {
    if (n > to) continue;
    const auto known = std::find(table.x.begin(), table.x.end(), n);
    forecast.points.push_back(
        {.n = n,
         .predicted = Predict(forecast.fit, n),
         .published = known == table.x.end() ? 0 : table.seconds[size_t(known - table.x.begin())],
         .fitted = std::find(fit.begin(), fit.end(), n) != fit.end()});
  }
  return forecast;
}

}  // namespace trireme
