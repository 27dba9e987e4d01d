#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "strategy/strategy.h"
#include "transport/world.h"

namespace trireme {

struct StrategyOptions;
struct StrategySetup;

// The choices of a strategy whose centre is at a server, with the words of a recipe.
struct CentreChoices {
  std::string_view merge;          // gradient, halve, average, elastic
  std::string_view pace = "free";  // free, clock, round
  int period = 10;                 // merges of weights: steps between meetings; 0: once an epoch
  int push = 1, fetch = 1;         // gradients
  int64_t staleness = -1;          // -1: any
  std::string_view stale = "scale";
  std::string_view inner = "alone";  // or allreduce or hogwild, in each of `groups`
  int groups = 2;
  int servers = 1;          // that the centre lies on
  bool broadcasts = false;  // gradients: the server offers every new centre, nobody asks
};

// Which workers work together, where workers do: group g of G has [W g / G, W (g + 1) / G).
int GroupOf(int worker, int workers, int groups);
// Workers that talk with the server: all, or the first of each group that all-reduces.
bool WorksInTeams(const CentreChoices& choices);
int ClientsOf(const CentreChoices& choices, int workers);

// A preset's choices with what the recipe says otherwise. UsageError for what makes no sense.
CentreChoices ResolveCentre(const CentreChoices& preset, const StrategyOptions& options);

std::unique_ptr<Strategy> MakeCentreWorker(const StrategySetup& setup, World& world,
                                           const CentreChoices& choices);
// Of any rank that is a server. `state` is the first's: it gives the others their portions.
std::unique_ptr<Server> MakeCentreServer(const StrategySetup& setup, World& world,
                                         const CentreChoices& choices,
                                         std::span<const float> state);

}  // namespace trireme
