#include "cli/args.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

constexpr Flag kFlags[] = {
    {"--batch", "N", "samples per step", "trainer.batch"},
    {"--shuffle", "on|off", "new order each epoch", "trainer.shuffle"},
    {"--deterministic", "", "equal bits", "trainer.deterministic"},
    {"--out", "DIR", "where the run goes"},
    {"--json", "", "print JSON"},
    kSetFlag,
};
constexpr Place kPlaces[] = {{"RECIPE", Place::kOptional}};
constexpr Place kRunAndFiles[] = {{"RUN"}, {"FILE", Place::kMany}};

Args Parse(const std::vector<std::string>& words) { return Args(kFlags, kPlaces, words); }

std::string Refusal(const std::vector<std::string>& words) {
  try {
    Parse(words);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Args, ReadsFlagsAndPlaces) {
  const Args args = Parse({"--batch", "4", "r.toml", "--out=a=b", "--json", "--batch=8"});
  EXPECT_EQ(args.Number<int>("--batch", 1), 8);  // the last counts
  EXPECT_EQ(args.Values("--batch"), (std::vector<std::string>{"4", "8"}));
  EXPECT_EQ(args.Value("--out"), "a=b");
  EXPECT_TRUE(args.Has("--json"));
  EXPECT_FALSE(args.Has("--deterministic"));
  EXPECT_EQ(args.Optional("RECIPE"), "r.toml");
  EXPECT_EQ(Parse({}).Optional("RECIPE"), std::nullopt);
  EXPECT_EQ(Parse({}).Value("--out"), std::nullopt);
  EXPECT_EQ(Parse({"--", "--json"}).Optional("RECIPE"), "--json");
  EXPECT_EQ(Parse({"-"}).Optional("RECIPE"), "-");
  EXPECT_EQ(Parse({"--batch", "-3"}).Value("--batch"), "-3");
  EXPECT_EQ(Parse({"--out="}).Value("--out"), "");
}

TEST(Args, GivesFlagsBackAsWords) {
  const std::vector<std::string> words = {"--set",  "a=b",      "--json", "--out=--x",
                                          "r.toml", "--batch=", "--set",  "c=d e"};
  const std::vector<std::string> without = {"--json", "--out=--x", "--batch", ""};
  EXPECT_EQ(Parse(words).FlagsWithout({"--set"}), without);
  const auto again = Parse(words).FlagsWithout({});
  EXPECT_EQ(Parse(again).FlagsWithout({}), again);
  EXPECT_EQ(Parse(again).Value("--out"), "--x");
  EXPECT_EQ(Parse(again).Values("--set"), (std::vector<std::string>{"a=b", "c=d e"}));
}

TEST(Args, TakesManyFiles) {
  const std::vector<std::string> words = {"runs/a", "x", "y"};
  const Args args({}, kRunAndFiles, words);
  EXPECT_EQ(args.Required("RUN"), "runs/a");
  EXPECT_EQ(args.Many("FILE"), (std::vector<std::string>{"x", "y"}));
}

TEST(Args, RefusesWhatTheTablesDoNotKnow) {
  EXPECT_EQ(Refusal({"--bacth", "4"}), "unknown flag --bacth; did you mean --batch?");
  EXPECT_EQ(Refusal({"-x"}), "unknown flag -x");
  EXPECT_EQ(Refusal({"--batch"}), "--batch needs a value: --batch N");
  EXPECT_EQ(Refusal({"--batch", "--json"}), "--batch needs a value: --batch N");
  EXPECT_EQ(Refusal({"--json=1"}), "--json takes no value, got --json=1");
  EXPECT_EQ(Refusal({"a", "b"}), "unexpected argument \"b\"");
  const std::vector<std::string> none;
  EXPECT_THROW(Args({}, kRunAndFiles, none), UsageError);
  const auto number = [](const std::string& text) -> std::string {
    try {
      Parse({"--batch", text}).Number<int>("--batch", 1);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(number("4"), "");
  EXPECT_EQ(number("4x"), "--batch must be a number, got \"4x\"");
  EXPECT_EQ(number("1.5"), "--batch must be a whole number, got \"1.5\"");
  EXPECT_EQ(number("1000000000000"),
            "--batch must be between -2147483648 and 2147483647, got 1000000000000");
}

struct TrainerOptions {
  IntOrWord batch = 64;
  bool shuffle = true;
  bool deterministic = false;
};

void Describe(OptionTable<TrainerOptions>& t) {
  t.Add("batch", &TrainerOptions::batch, AtLeast(1) || OneOf({"full"}), Binds::kNothing, "");
  t.Add("shuffle", &TrainerOptions::shuffle, Any(), Binds::kNothing, "");
  t.Add("deterministic", &TrainerOptions::deterministic, Any(), Binds::kNothing, "");
}

TEST(Args, FlagsStandForKeys) {
  TrainerOptions trainer;
  Sections sections;
  sections.Add("trainer", trainer);
  const Args args = Parse(
      {"--batch", "full", "--set=trainer.shuffle=off", "--shuffle", "off", "--deterministic"});
  EXPECT_EQ(args.Settings(),
            (std::vector<std::string>{"trainer.batch=full", "trainer.shuffle=off",
                                      "trainer.shuffle=off", "trainer.deterministic=true"}));
  EXPECT_TRUE(args.Sets("trainer.shuffle"));
  EXPECT_FALSE(args.Sets("trainer.shuf"));
  args.ApplyTo(sections);
  EXPECT_EQ(trainer.batch.word, "full");
  EXPECT_FALSE(trainer.shuffle);
  EXPECT_TRUE(trainer.deterministic);
  EXPECT_EQ(sections.Where("trainer.batch"), "--batch full");
  try {
    Parse({"--batch", "0"}).ApplyTo(sections);
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_STREQ(e.what(), "--batch 0: trainer.batch must be at least 1 or \"full\", got 0");
  }
}

}  // namespace
}  // namespace trireme
