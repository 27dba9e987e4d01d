#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "strategy/inner/overlap.h"

namespace trireme {

class DeviceGroups;
class Group;
class Inner;
class Log;
class StrategyCommon;
struct Plan;

// What an inner choice is made of.
struct InnerNeeds {
  const Plan& plan;
  int ranks = 1, servers = 0;
  bool deterministic = false;
  bool in_step = true;
  bool balanced = false;                         // shards move between workers
  bool differences = false;                      // of weights are added up, not gradients
  bool star = false;                             // each worker sends straight to the server
  Overlap overlap;                               // through a server
  std::string algorithm = "auto", wire = "f32";  // of an all-reduce
  size_t bucket_bytes = 0;                       // at most
  StrategyCommon* common = nullptr;              // what the row made, if it did
  DeviceGroups* devices = nullptr;               // of this rank's device, where devices can add up
  const Log* log = nullptr;                      // not null: how gradients are summed is said
};

// How replicas advance inside a step (strategy.inner): a row of one list.
struct InnerKind {
  const char* name;
  const char* help;

  // What its workers need of each other.
  bool in_step;                // they wait for each other in every step
  bool alone = false;          // they do not: something else must bring them together
  bool one_process = false;    // they are threads of one process
  bool one_source = false;     // ... and one thread of it fetches the samples of all of them
  bool shares_memory = false;  // they are threads, or processes that share memory
  bool host_memory = false;    // they read and write each other's, so it is no card's
  bool groups = false;         // some of them can be a group, below a server or an average
  int servers = 0;  // the first ranks, which hold the weights and do not train: strategy.route
  bool differences = false;  // strategy.merge = "difference" is possible

  // Of this rank; `group` are those who advance together, null where there is no group.
  std::unique_ptr<Inner> (*make)(const InnerNeeds& needs, Group* group);
  // Not null: what strategy.algorithm is here, where it is left open. Every rank calls it.
  std::string (*algorithm)(const InnerNeeds& needs, Group& group) = nullptr;
  // Not null: what the workers of one process have in common, made before them.
  std::unique_ptr<StrategyCommon> (*common)(int workers, double timeout_s) = nullptr;
};

std::span<const InnerKind> InnerKinds();
const InnerKind& FindInner(std::string_view name);

}  // namespace trireme
