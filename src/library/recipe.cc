#include <fmt/core.h>

#include "base/version.h"
#include "library/settings.h"

namespace trireme::v1 {

std::string Version() { return std::string(trireme::Version()); }

Recipe::Recipe() : impl_(std::make_unique<Impl>()) {}
Recipe::Recipe(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Recipe::Recipe(const Recipe& other) : impl_(std::make_unique<Impl>(*other.impl_)) {}
Recipe::Recipe(Recipe&& other) noexcept = default;
Recipe& Recipe::operator=(const Recipe& other) { return *this = Recipe(other); }
Recipe& Recipe::operator=(Recipe&& other) noexcept = default;
Recipe::~Recipe() = default;

Recipe Recipe::Load(const std::string& file_or_name) {
  return Translated([&] {
    auto impl = std::make_unique<Impl>(Impl{.base = ReadRecipe(file_or_name), .followed = true});
    impl->Settle();  // refuses unknown keys
    return Recipe(std::move(impl));
  });
}

Recipe Recipe::OfRun(const std::string& run) {
  return Translated([&] {
    return Recipe(std::make_unique<Impl>(Impl{.base = ReadRunRecipe(run), .followed = true}));
  });
}

Recipe& Recipe::Set(const std::string& key, const std::string& value) {
  return Translated([&]() -> Recipe& {
    Impl changed = *impl_;
    std::erase_if(changed.set, [&](const auto& pair) { return pair.first == key; });
    changed.set.emplace_back(key, value);
    changed.Settle();
    *impl_ = std::move(changed);
    return *this;
  });
}

std::string Recipe::Toml() const {
  return Translated([&] { return impl_->Settle()->sections.ToToml(); });
}

std::unique_ptr<Settings> Settings::Of(const Recipe& recipe) { return recipe.impl_->Settle(); }

std::unique_ptr<Settings> Recipe::Impl::Settle() const {
  auto settings = std::make_unique<Settings>();
  Sections& sections = settings->sections;
  Bind(sections, settings->recipe);
  sections.Load(base.entries, base.file);
  for (const auto& [key, value] : set) {
    sections.Set(key, value, Origin::kCommandLine, fmt::format("Set(\"{}\", \"{}\")", key, value));
  }
  if (!followed) settings->open = FindOpenKeys(sections);
  return settings;
}

}  // namespace trireme::v1
