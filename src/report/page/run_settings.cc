#include "report/page/run_settings.h"

#include <map>
#include <set>

namespace trireme {
namespace {

using Settings = std::map<std::string, std::string>;

Settings SettingsOf(const RunData& run) {
  Settings settings;
  for (const TomlEntry& entry : run.config) {
    const std::string key = entry.section.empty() ? entry.key : entry.section + "." + entry.key;
    settings[key] = entry.value.Shown();
  }
  return settings;
}

}  // namespace

PageTable SettingsTable(std::span<const NamedRun> runs, WhichSettings which) {
  PageTable table;
  table.header = {"key"};
  std::vector<Settings> all;
  std::set<std::string> keys;
  const bool one_value = runs.size() == 1 || which == WhichSettings::kSame;
  if (one_value) table.header.push_back("value");
  for (const NamedRun& run : runs) {
    if (!one_value) table.header.push_back(run.name);
    all.push_back(SettingsOf(*run.data));
    for (const auto& [key, value] : all.back()) keys.insert(key);
  }
  for (const std::string& key : keys) {
    std::vector<std::string> row{key};
    bool differs = false;
    for (const Settings& settings : all) {
      const auto found = settings.find(key);
      row.push_back(found == settings.end() ? "-" : found->second);
      differs = differs || row.back() != row[1];
    }
    const bool wanted =
        which == WhichSettings::kAll || differs == (which == WhichSettings::kDifferent);
    if (!wanted) continue;
    if (one_value) row.resize(2);
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace trireme
