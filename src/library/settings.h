#pragma once
#define TRIREME_BUILDS_LIBRARY
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "library/trireme.h"
#include "recipe/recipe.h"
#include "trainer/defaults.h"

namespace trireme::v1 {

// The keys as Train needs them. Sections point into the recipe, so that this stays where it is.
struct Settings {
  trireme::Recipe recipe;
  Sections sections;
  OpenKeys open;

  static std::unique_ptr<Settings> Of(const Recipe& recipe);
};

// What was loaded and set; the rest follows from it.
struct Recipe::Impl {
  RecipeEntries base = {};
  bool followed = false;                                      // there is a base
  std::vector<std::pair<std::string, std::string>> set = {};  // each key once

  std::unique_ptr<Settings> Settle() const;
};

// Calls `fn`; what it throws becomes an exception of the public header.
template <class F>
decltype(auto) Translated(F&& fn) {
  try {
    return fn();
  } catch (const trireme::UsageError& error) {
    throw UsageError(error.what());
  } catch (const trireme::Error& error) {
    throw Error(error.what());
  } catch (const std::system_error& error) {  // of a file system, or of threads
    throw Error(error.what());
  }
}

inline Severity SeverityOf(LogLevel level) {
  return level <= LogLevel::kWarn ? Severity::kWarning : Severity::kInfo;
}

}  // namespace trireme::v1
