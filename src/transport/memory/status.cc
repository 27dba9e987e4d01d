#include "transport/memory/status.h"

#include <fmt/format.h>

#include "base/text.h"

namespace trireme {

std::string StatusText(const MemoryStore::Facts& facts) {
  std::string text = fmt::format(
      "memory box {:016x}: {} of {} in use, {}, {}, {} made, {} refused\n", facts.incarnation,
      FormatBytes(double(facts.used)), FormatBytes(double(facts.size)),
      Counted(int64_t(facts.regions.size()), "region"), Counted(facts.clients, "client"),
      Counted(int64_t(facts.changes), "change"), FormatCount(int64_t(facts.refused)));
  for (const MemoryStore::RegionFacts& region : facts.regions) {
    text += fmt::format("  {}: {} {} values, version {}{}\n", region.name,
                        FormatCount(int64_t(region.length)), NameOf(region.type), region.version,
                        region.locked ? ", locked" : "");
  }
  return text;
}

}  // namespace trireme
