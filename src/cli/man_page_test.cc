#include "cli/man_page.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "cli/commands.h"

namespace trireme {
namespace {

const ManPage& Page(const std::vector<ManPage>& pages, const std::string& name) {
  const auto at = std::ranges::find(pages, name, &ManPage::name);
  EXPECT_NE(at, pages.end()) << name;
  return at == pages.end() ? pages.front() : *at;
}

void ExpectIn(const ManPage& page, const std::string& part) {
  EXPECT_NE(page.text.find(part), std::string::npos) << "no \"" << part << "\" in " << page.name;
}

TEST(ManPage, EveryCommandHasOneAndTheOverviewNamesThemAll) {
  const std::vector<ManPage> pages = ManPages(AllCommands());
  EXPECT_EQ(pages.size(), AllCommands().size() + 2);
  ExpectIn(Page(pages, "trireme"), "trireme\\-bench\\-step (1)");
  ExpectIn(Page(pages, "trireme-train"), "\\fB\\-\\-epochs\\fR \\fIN\\fR");
  ExpectIn(Page(pages, "trireme-recipe"), ".SH \"[strategy]\"");
  ExpectIn(Page(pages, "trireme-recipe"), "\\fBperiod\\fR");
}

TEST(ManPage, NoLineOfTextIsTakenForARequest) {
  constexpr Place kPlaces[] = {{"WORD", Place::kRequired, ".so it begins \\ 'and' goes on"}};
  const Command command = {.name = "try",
                           .summary = "try it",
                           .usage = "trireme try WORD",
                           .examples = "trireme try 'x'\n'quoted' # at the beginning\n",
                           .flags = {},
                           .places = kPlaces,
                           .run = nullptr};
  const Command* const commands[] = {&command};
  const std::vector<ManPage> pages = ManPages(commands);
  ExpectIn(pages[1], "\n\\&.so it begins \\e 'and' goes on\n");
  ExpectIn(pages[1], "\n\\&'quoted' # at the beginning\n");
}

}  // namespace
}  // namespace trireme
