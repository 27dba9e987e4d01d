#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Times of the field's published experiments, as they were given to this project.
struct PublishedTable {
  enum class Kind {
    kNodes,    // each brings its own processors and loaders; they exchange gradients over a network
    kDevices,  // of one machine: they share its loaders
    kLoaders,  // threads or processes that decode; what computes stays the same
    kNames,    // no numbers on the axis
  };
  std::string_view name;   // ddp-nodes
  std::string_view title;  // Training time over nodes
  std::string_view axis;   // nodes
  Kind kind = Kind::kNodes;
  std::vector<std::string> names;  // of the points, where the axis has no numbers
  std::vector<double> x;
  std::vector<double> seconds;
  std::string_view source;
};

std::span<const PublishedTable> PublishedTables();
const PublishedTable& FindPublished(std::string_view name);  // UsageError if there is none

// What a document says in words, without a table.
struct PublishedClaim {
  std::string_view name;    // scenes-epoch
  std::string_view text;    // a sentence without its full stop
  std::string_view source;  // the document
};

std::span<const PublishedClaim> PublishedClaims();
const PublishedClaim& FindClaim(std::string_view name);

// "32:06" (minutes, seconds), "2:08:24" (hours first), "45" (seconds); nothing for anything else.
std::optional<double> ParseClock(std::string_view text);
std::string FormatClock(double seconds);  // the same, to the second

}  // namespace trireme
