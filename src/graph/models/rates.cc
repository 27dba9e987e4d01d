#include "graph/models/rates.h"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "graph/models/layer_names.h"

namespace trireme {
namespace {

struct NamedRate {
  std::string name;
  double rate;
};

NamedRate ParseGroup(const std::string& text) {
  const size_t equals = text.find('=');
  const std::string factor = equals == text.npos ? "" : text.substr(equals + 1);
  const auto rate = ParseNumber<double>(factor);
  if (equals == 0 || !rate || *rate < 0) {
    throw UsageError(
        "optimizer.rates: \"{}\" is not NAME=FACTOR, a layer and a factor of at least 0, as in "
        "\"layer1=0.1\"",
        text);
  }
  return {text.substr(0, equals), *rate};
}

std::vector<NamedRate> ParseGroups(const std::string& rates) {
  std::vector<NamedRate> groups;
  for (const std::string& text : Split(rates, ' ')) {
    if (text.empty()) continue;
    groups.push_back(ParseGroup(text));
    const std::string& name = groups.back().name;
    if (std::ranges::count(groups, name, &NamedRate::name) > 1) {
      throw UsageError("optimizer.rates names layer \"{}\" twice; keep one", name);
    }
  }
  // Later ones count.
  std::ranges::stable_sort(groups, {}, [](const NamedRate& group) { return group.name.size(); });
  return groups;
}

}  // namespace

std::vector<double> RatesOf(const Graph& graph, const std::string& rates) {
  const std::vector<NamedRate> groups = ParseGroups(rates);
  if (groups.empty()) return {};
  std::vector<double> all(graph.parameters.size(), 1);
  for (const auto& [name, rate] : groups) {
    bool known = false, trained = false;
    for (const Node& node : graph.nodes) {
      if (node.parameters.empty() || !IsWithin(node.name, name)) continue;
      known = true;
      trained = trained || !node.frozen;
      for (const int p : node.parameters) all[size_t(p)] = rate;
    }
    if (!known) {
      throw UsageError("optimizer.rates: the network has no layer \"{}\" with weights; it has {}",
                       name, LikelyLayers(graph, name));
    }
    if (!trained) {
      throw UsageError(
          "optimizer.rates: layer \"{}\" is frozen (model.freeze) and has no rate; "
          "leave it out",
          name);
    }
  }
  return all;
}

}  // namespace trireme
