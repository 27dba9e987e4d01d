#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/transports.h"
#include "record/json.h"
#include "report/page/page.h"
#include "study/published.h"
#include "study/sweep_table.h"

namespace trireme {

// How large a published experiment is repeated.
struct ReplaySize {
  bool full = false;  // as published, instead of minutes on two processors
  int repeat = 3;
  std::optional<std::string> data;           // instead of what is found on the machine
  const TransportKind* transport = nullptr;  // of ReplayKind::over_messages; null: tcp
  std::optional<std::string> device;         // of ReplayKind::on_devices, beside the processor
};

struct ReplayPart;

// A sentence of the document, and what our runs say of the same thing.
struct ReplayClaim {
  const PublishedClaim* published;
  // Null: nothing here is like it.
  std::string (*ours)(const ReplayPart& part, std::span<const SweepNumbers> rows) = nullptr;
};

// A diagram of a published experiment: a sweep, and the table that it repeats.
struct ReplayPart {
  std::string name;   // of its folder
  std::string title;  // Time over nodes
  std::string text;   // what stands for what, and what is not the same
  SweepPlan plan;
  size_t axis = 0;                            // of the varied keys
  const PublishedTable* published = nullptr;  // null: the document has a diagram without numbers
  std::vector<ReplayClaim> claims;
  std::string skipped;  // why it cannot be run; empty: it can
};

struct Replay {
  std::string name, title, text;
  std::vector<ReplayPart> parts;
};

struct ReplayKind {
  std::string_view name, summary;
  Replay (*make)(const ReplaySize& size);
  bool over_messages = false;  // its ranks may talk over any transport (--transport)
  bool on_devices = false;     // it may also run on another device (--device)
};
std::span<const ReplayKind> ReplayKinds();
const ReplayKind& FindReplay(std::string_view name);  // UsageError if there is none

struct ReplayedPart {
  ReplayPart part;
  std::vector<SweepNumbers> rows;  // empty: skipped
};

std::string ReplayText(const Replay& replay, std::span<const ReplayedPart> parts);
Json ReplayJson(const Replay& replay, std::span<const ReplayedPart> parts);
Page ReplayPage(const Replay& replay, std::span<const ReplayedPart> parts,
                const std::string& command);

}  // namespace trireme
