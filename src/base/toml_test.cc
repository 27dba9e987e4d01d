#include "base/toml.h"

#include <gtest/gtest.h>

#include <random>

#include "base/error.h"

namespace trireme {
namespace {

using Kind = TomlValue::Kind;

std::string Refusal(std::string_view text) {
  try {
    ParseToml(text, "r.toml");
  } catch (const UsageError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Toml, GivesEntriesInTheOrderOfLines) {
  const auto entries = ParseToml(
      "top = 1\n[trainer]\nsteps = 100_000\nbatch = \"full\"\n\n[data]\nshuffle = false\n"
      "mean = [0.5, 1]\n[optimizer]\nlr = 1e-3\nseed = 0xFF\n",
      "r.toml");
  ASSERT_EQ(entries.size(), 7u);
  EXPECT_EQ(entries[0].section, "");
  EXPECT_EQ(entries[1].section, "trainer");
  EXPECT_EQ(entries[1].key, "steps");
  EXPECT_EQ(entries[1].value.kind, Kind::kInteger);
  EXPECT_EQ(entries[1].value.text, "100000");
  EXPECT_EQ(entries[2].value.kind, Kind::kString);
  EXPECT_EQ(entries[2].value.text, "full");
  EXPECT_EQ(entries[3].value.kind, Kind::kBool);
  EXPECT_EQ(entries[3].line, 7);
  EXPECT_EQ(entries[4].value.Shown(), "[0.5, 1]");
  EXPECT_EQ(entries[5].value.kind, Kind::kFloat);
  EXPECT_EQ(entries[5].value.text, "0.001");
  EXPECT_EQ(entries[6].value.text, "255");
  EXPECT_EQ(entries[6].line, 11);
}

TEST(Toml, TakesDottedKeysAndInlineTablesForSections) {
  const auto entries = ParseToml("trainer.batch = 4\ndata = {source = \"iris\"}\n", "r.toml");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].section, "trainer");
  EXPECT_EQ(entries[0].key, "batch");
  EXPECT_EQ(entries[1].section, "data");
  EXPECT_EQ(entries[1].key, "source");
}

TEST(Toml, PointsAtWhatItRefuses) {
  EXPECT_EQ(Refusal("[trainer]\nbatch = = 4\n").substr(0, 11), "r.toml:2:9:");
  EXPECT_EQ(
      Refusal("[trainer]\nepochs three\n"),
      "r.toml:2:8: expected [section] or key = value with strings in quotes, got \"epochs three\"");
  EXPECT_EQ(
      Refusal("[trainer]\nbatch = full # all\n"),
      "r.toml:2:10: expected [section] or key = value with strings in quotes, got \"batch = full # "
      "all\"");
  EXPECT_EQ(Refusal("[trainer]\nbatch = 4\nbatch = 5\n").substr(0, 9), "r.toml:3:");
  EXPECT_EQ(Refusal("[a]\nb = {c = 1}\n"), "r.toml:2:5: recipes cannot nest sections");
  EXPECT_EQ(Refusal("[[a]]\nb = 1\n").substr(0, 9), "r.toml:1:");
  EXPECT_EQ(Refusal("[a]\nb = [[1], [2]]\n"), "r.toml:2:6: recipes cannot nest lists");
  EXPECT_EQ(Refusal("[a]\nb = [1, \"x\"]\n"), "r.toml:2:9: a list cannot mix numbers and strings");
  EXPECT_EQ(Refusal("[a]\nb = [true]\n"),
            "r.toml:2:6: a list holds numbers or strings, not true or false");
  EXPECT_EQ(Refusal("[a]\nb = 1979-05-27\n").substr(0, 33), "r.toml:2:5: recipes take no dates");
  EXPECT_EQ(Refusal("[a]\nb = \"\xE4\"\n").substr(0, 9), "r.toml:2:");
  EXPECT_EQ(Refusal("x = \"" + std::string(1 << 20, 'a') + "\"").substr(0, 14), "r.toml: larger");
}

TEST(Toml, RefusesNestingThatWouldExhaustTheStack) {
  std::string dotted = "[a";
  for (int i = 0; i < 400'000; ++i) dotted += ".a";
  EXPECT_EQ(Refusal(dotted + "]\n"), "r.toml:1: more than 1000 dots in one line");
  EXPECT_NE(Refusal("[a]\nb = " + std::string(100'000, '[')), "accepted");
  std::string inline_tables = "[a]\nb = ";
  for (int i = 0; i < 100'000; ++i) inline_tables += "{b=";
  EXPECT_NE(Refusal(inline_tables), "accepted");
  std::string just_allowed = "[a";
  for (int i = 0; i < 999; ++i) just_allowed += ".a";
  EXPECT_NE(Refusal(just_allowed + "]\nb = 1\n"), "accepted");
}

TEST(Toml, ReadsOnlyFilesThatAreThere) {
  EXPECT_THROW(ReadTomlFile("/nonexistent/recipe.toml"), UsageError);
  EXPECT_THROW(ReadTomlFile("/tmp"), UsageError);
  EXPECT_THROW(ReadTomlFile("/dev/zero"), UsageError);
  EXPECT_TRUE(ReadTomlFile("/dev/null").empty());
}

TEST(Toml, QuotesLinesSoThatTheTextComesBack) {
  for (const std::string text : {"\n", "\n\na\n", "a\\\n b\t\"\"\"\"c\"", "a\r\nb\x01\\"}) {
    const auto entries = ParseToml("[a]\nb = " + QuoteTomlLines(text) + "\nc = 1\n", "r.toml");
    ASSERT_EQ(entries.size(), 2u);
    EXPECT_EQ(entries[0].value.text, text);
  }
}

TEST(Toml, QuotesSoThatTheTextComesBack) {
  std::string every;
  for (int c = 0; c < 128; ++c) every += static_cast<char>(c);
  every += "\xE2\x82\xAC";
  const auto entries = ParseToml("[a]\nb = " + QuoteToml(every) + "\n", "r.toml");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].value.text, every);
}

// Whatever the bytes are: entries or a UsageError, never a crash.
TEST(Toml, SurvivesDamagedRecipes) {
  const std::string good =
      "# a recipe\n[trainer]\nbatch = 64\nlr = [1e-3, 0.5]\nname = \"x\\u00e4\" # c\n"
      "[data]\nsource = 'csv:a.csv'\nflag = true\nwhen = 1979-05-27T07:32:00Z\nt = {a.b = 1}\n";
  std::mt19937_64 random(7);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string text = good;
    const int edits = 1 + static_cast<int>(random() % 8);
    for (int e = 0; e < edits && !text.empty(); ++e) {
      const size_t at = random() % text.size();
      switch (random() % 4) {
        case 0:
          text[at] = static_cast<char>(random());
          break;
        case 1:
          text.erase(at, random() % 9);
          break;
        case 2:
          text.insert(at, text.substr(random() % text.size(), random() % 20));
          break;
        default:
          text.insert(at, 1, "[]{}=\"'.\n#,"[random() % 11]);
          break;
      }
    }
    refused += Refusal(text) != "accepted";
  }
  EXPECT_GT(refused, 10'000);
}

}  // namespace
}  // namespace trireme
