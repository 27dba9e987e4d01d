#include "base/options.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "base/error.h"
#include "base/sections.h"

namespace trireme {
namespace {

struct TrainerOptions {
  IntOrWord batch = 64;
  int epochs = 3;
  int64_t steps = 0;
  uint64_t seed = 1;
  bool deterministic = false;
};

void Describe(OptionTable<TrainerOptions>& t) {
  t.Add("batch", &TrainerOptions::batch, AtLeast(1) || OneOf({"full"}), Binds::kNothing,
        "samples per step");
  t.Add("epochs", &TrainerOptions::epochs, AtLeast(1), Binds::kNothing, "passes over the data");
  t.Add("steps", &TrainerOptions::steps, AtLeast(0), Binds::kNothing, "steps, 0: by epochs");
  t.Add("seed", &TrainerOptions::seed, Any(), Binds::kNothing,
        "what all random numbers follow from");
  t.Add("deterministic", &TrainerOptions::deterministic, Any(), Binds::kNothing,
        "equal bits | any ranks");
}

struct OptimizerOptions {
  std::string name = "sgd";
  float lr = 0.1f;
  double decay = 0;
  std::vector<double> mean = {0.5, 0.25};
  std::vector<int> milestones;
  std::vector<std::string> hosts = {"a", "b"};
};

void Describe(OptionTable<OptimizerOptions>& t) {
  t.Add("name", &OptimizerOptions::name, OneOf({"sgd", "adam", "adamw"}), Binds::kNothing,
        "update rule");
  t.Add("lr", &OptimizerOptions::lr, Above(0) && AtMost(0.1), Binds::kNothing, "learning rate");
  t.Add("decay", &OptimizerOptions::decay, AtLeast(0) && Below(1), Binds::kNothing, "weight decay");
  t.Add("mean", &OptimizerOptions::mean, Between(0, 1), Binds::kNothing, "means");
  t.Add("milestones", &OptimizerOptions::milestones, AtLeast(1), Binds::kNothing,
        "epochs at which lr falls");
  t.Add("hosts", &OptimizerOptions::hosts, Any(), Binds::kNothing, "names");
}

struct Recipe {
  TrainerOptions trainer;
  OptimizerOptions optimizer;
  Sections sections;
  Recipe() {
    sections.Add("trainer", trainer);
    sections.Add("optimizer", optimizer);
  }
  void Load(std::string_view toml) { sections.Load(ParseToml(toml, "r.toml"), "r.toml"); }
};

std::string LoadRefusal(std::string_view toml) {
  Recipe recipe;
  try {
    recipe.Load(toml);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "accepted";
}

std::string SetRefusal(std::string_view assignment) {
  Recipe recipe;
  try {
    recipe.sections.SetAssignment(assignment);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Options, TakeValuesFromARecipe) {
  Recipe r;
  r.Load(
      "[trainer]\nbatch = \"full\"\nepochs = 7\nseed = \"18446744073709551615\"\n"
      "deterministic = true\n[optimizer]\nname = \"adam\"\nlr = 0.1\ndecay = 0\n"
      "mean = [1, 0.5]\nmilestones = [3, 6]\nhosts = []\n");
  EXPECT_EQ(r.trainer.batch.word, "full");
  EXPECT_EQ(r.trainer.epochs, 7);
  EXPECT_EQ(r.trainer.seed, std::numeric_limits<uint64_t>::max());
  EXPECT_TRUE(r.trainer.deterministic);
  EXPECT_EQ(r.optimizer.name, "adam");
  EXPECT_EQ(r.optimizer.lr, 0.1f);  // at most 0.1 as written, though 0.1f is a little more
  EXPECT_EQ(r.optimizer.mean, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(r.optimizer.milestones, (std::vector<int>{3, 6}));
  EXPECT_TRUE(r.optimizer.hosts.empty());
}

TEST(Options, TakeValuesFromText) {
  Recipe r;
  for (const char* assignment :
       {"trainer.batch=32", "trainer.deterministic=on", "optimizer.lr=1e-3", " trainer.steps = 9 ",
        "optimizer.milestones=3,6", "optimizer.mean=[0.5, 1]", "optimizer.name=\"adamw\"",
        "optimizer.hosts=x, y=z"}) {
    r.sections.SetAssignment(assignment);
  }
  EXPECT_EQ(r.trainer.batch, IntOrWord(32));
  EXPECT_TRUE(r.trainer.deterministic);
  EXPECT_EQ(r.optimizer.lr, 1e-3f);
  EXPECT_EQ(r.trainer.steps, 9);
  EXPECT_EQ(r.optimizer.milestones, (std::vector<int>{3, 6}));
  EXPECT_EQ(r.optimizer.mean, (std::vector<double>{0.5, 1}));
  EXPECT_EQ(r.optimizer.name, "adamw");
  EXPECT_EQ(r.optimizer.hosts, (std::vector<std::string>{"x", "y=z"}));
}

TEST(Options, SayWhereWhatAndWhichValues) {
  EXPECT_EQ(LoadRefusal("[trainer]\n\nepochs = 0\n"),
            "r.toml:3: trainer.epochs must be at least 1, got 0");
  EXPECT_EQ(LoadRefusal("[trainer]\nepochs = \"3\"\n"),
            "r.toml:2: trainer.epochs must be an integer, got \"3\"");
  EXPECT_EQ(LoadRefusal("[trainer]\nepochs = 1.5\n"),
            "r.toml:2: trainer.epochs must be an integer, got 1.5");
  EXPECT_EQ(LoadRefusal("[trainer]\nepochs = 3000000000\n"),
            "r.toml:2: trainer.epochs must be between -2147483648 and 2147483647, got 3000000000");
  EXPECT_EQ(LoadRefusal("[trainer]\nbatch = 0\n"),
            "r.toml:2: trainer.batch must be at least 1 or \"full\", got 0");
  EXPECT_EQ(LoadRefusal("[trainer]\nbatch = 1.5\n"),
            "r.toml:2: trainer.batch must be an integer or \"full\", got 1.5");
  EXPECT_EQ(LoadRefusal("[trainer]\nbatch = \"ful\"\n"),
            "r.toml:2: trainer.batch must be an integer or \"full\", got \"ful\"; did you mean "
            "\"full\"?");
  EXPECT_EQ(LoadRefusal("[trainer]\ndeterministic = 1\n"),
            "r.toml:2: trainer.deterministic must be true or false, got 1");
  EXPECT_EQ(LoadRefusal("[optimizer]\nname = \"adm\"\n"),
            "r.toml:2: optimizer.name must be one of \"sgd\", \"adam\", \"adamw\", got \"adm\"; "
            "did you mean \"adam\"?");
  EXPECT_EQ(LoadRefusal("[optimizer]\nlr = 0\n"),
            "r.toml:2: optimizer.lr must be above 0 and at most 0.1, got 0");
  EXPECT_EQ(LoadRefusal("[optimizer]\nlr = nan\n"),
            "r.toml:2: optimizer.lr must be a finite number that fits in 32 bits, got nan");
  EXPECT_EQ(LoadRefusal("[optimizer]\nmean = [0.5, 2]\n"),
            "r.toml:2: each item of optimizer.mean must be between 0 and 1, got 2");
  EXPECT_EQ(LoadRefusal("[optimizer]\nmean = 0.5\n"),
            "r.toml:2: optimizer.mean must be a list of numbers, got 0.5");
  EXPECT_EQ(LoadRefusal("[optimizer]\nmilestones = [1.5]\n"),
            "r.toml:2: each item of optimizer.milestones must be an integer, got 1.5");
  EXPECT_EQ(SetRefusal("trainer.epochs=three"),
            "--set trainer.epochs=three: trainer.epochs must be an integer, got \"three\"");
  EXPECT_EQ(SetRefusal("optimizer.lr=1e99"),
            "--set optimizer.lr=1e99: optimizer.lr must be a finite number that fits in 32 bits, "
            "got 1e99");
  EXPECT_EQ(SetRefusal("trainer.seed=-1"),
            "--set trainer.seed=-1: trainer.seed must be between 0 and 18446744073709551615, got "
            "-1");
  EXPECT_EQ(SetRefusal("optimizer.name=\xE4"),
            "--set optimizer.name=\xE4: optimizer.name must be UTF-8 text");
  EXPECT_EQ(SetRefusal("trainer.epochs"), "--set trainer.epochs: expected section.key=value");
}

TEST(Sections, SuggestTheNearestKey) {
  EXPECT_EQ(LoadRefusal("[trainer]\nepoch = 1\n"),
            "r.toml:2: unknown key trainer.epoch; did you mean trainer.epochs?");
  EXPECT_EQ(LoadRefusal("[trainer]\nlr = 1\n"),
            "r.toml:2: unknown key trainer.lr; did you mean optimizer.lr?");
  EXPECT_EQ(LoadRefusal("[trianer]\nepohcs = 1\n"),
            "r.toml:2: unknown key trianer.epohcs; did you mean trainer.epochs?");
  EXPECT_EQ(LoadRefusal("batch = 1\n"),
            "r.toml:1: batch is outside any section; did you mean trainer.batch?");
  EXPECT_EQ(LoadRefusal("bacth = 1\n"),
            "r.toml:1: bacth is outside any section; did you mean trainer.batch?");
  EXPECT_EQ(LoadRefusal("[zzz]\nqqqqqqqqqq = 1\n"), "r.toml:2: unknown key zzz.qqqqqqqqqq");
  EXPECT_EQ(SetRefusal("=1"), "--set =1:  is outside any section");
}

TEST(Sections, TheCommandLineWinsOverTheRecipe) {
  Recipe r;
  r.sections.Set("trainer.epochs", "30", Origin::kCommandLine, "--epochs 30");
  r.sections.SetAssignment("trainer.steps=6");
  r.Load("[trainer]\nepochs = 10\nsteps = 4\nseed = 2\n");
  EXPECT_EQ(r.trainer.epochs, 30);
  EXPECT_EQ(r.trainer.steps, 6);
  EXPECT_EQ(r.trainer.seed, 2u);
  EXPECT_EQ(r.sections.Where("trainer.epochs"), "--epochs 30");
  EXPECT_EQ(r.sections.Where("trainer.seed"), "r.toml:4");
  EXPECT_EQ(r.sections.GivenBy("trainer.steps"), Origin::kCommandLine);
  EXPECT_FALSE(r.sections.IsGiven("trainer.batch"));
  EXPECT_THROW(r.Load("[trainer]\nepochs = 0\n"), UsageError);  // loses, and is wrong
  EXPECT_EQ(r.trainer.epochs, 30);
}

TEST(Sections, RefuseTwoValuesOfOneKeyOnTheCommandLine) {
  Recipe r;
  r.sections.Set("optimizer.lr", "0.02", Origin::kCommandLine, "--lr 0.02");
  r.sections.SetAssignment("optimizer.lr=0.020");  // the same number
  r.Load("[optimizer]\nlr = 0.05\n");
  EXPECT_EQ(r.optimizer.lr, 0.02f);
  try {
    r.sections.SetAssignment("optimizer.lr=0.03");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_STREQ(e.what(), "optimizer.lr is given twice: --lr 0.02 and --set optimizer.lr=0.03");
  }
}

TEST(Sections, RefuseTwoKeysThatSayTheSameThing) {
  Recipe r;
  r.Load("[trainer]\nepochs = 5\n");
  r.sections.RefuseBoth("trainer.epochs", "trainer.steps");
  r.sections.SetAssignment("trainer.steps=5");
  EXPECT_THROW(r.sections.RefuseBoth("trainer.epochs", "trainer.steps"), UsageError);

  Recipe again;  // a complete config gives both, one of them at its default
  again.Load("[trainer]\nepochs = 5\nsteps = 0\n");
  again.sections.RefuseBoth("trainer.epochs", "trainer.steps");

  Recipe by_hand;
  by_hand.sections.SetAssignment("trainer.epochs=3");
  by_hand.sections.Set("trainer.steps", "9", Origin::kCommandLine, "--steps 9");
  EXPECT_THROW(by_hand.sections.RefuseBoth("trainer.epochs", "trainer.steps"), UsageError);
}

TEST(Sections, PrintACompleteRecipe) {
  Recipe r;
  r.sections.SetAssignment("trainer.batch=full");
  EXPECT_EQ(r.sections.ToToml(),
            "[trainer]\nbatch = \"full\"\nepochs = 3\nsteps = 0\nseed = 1\ndeterministic = false\n"
            "\n[optimizer]\nname = \"sgd\"\nlr = 0.1\ndecay = 0.0\nmean = [0.5, 0.25]\n"
            "milestones = []\nhosts = [\"a\", \"b\"]\n");
  EXPECT_NE(r.sections.HelpText().find(
                "batch = \"full\"         # samples per step (at least 1 or \"full\")\n"),
            std::string::npos);
  EXPECT_NE(
      r.sections.Markdown().find(
          "| `batch` | `64` | an integer, at least 1 or \"full\" | nothing | samples per step |\n"),
      std::string::npos);
  EXPECT_NE(r.sections.Markdown().find("equal bits \\| any ranks"), std::string::npos);
  Recipe from_help;
  from_help.Load(r.sections.HelpText());
  EXPECT_EQ(from_help.sections.ToToml(), r.sections.ToToml());
}

TEST(Options, SayWhatTheyBind) {
  using enum Binds;
  EXPECT_EQ(TextOf(kNothing), "nothing");
  EXPECT_EQ(TextOf(kLocal), "this machine");
  EXPECT_EQ(TextOf(kRun), "ranks, clients, resume");
  EXPECT_TRUE(Includes(kRun, kJob));
  EXPECT_FALSE(Includes(kRanks | kResume, kJob));
}

TEST(Sections, SeveralStructsShareASection) {
  TrainerOptions trainer;
  OptimizerOptions optimizer;
  Sections sections;
  sections.Add("all", trainer);
  sections.Add("all", optimizer);
  sections.SetAssignment("all.lr=0.05");
  sections.SetAssignment("all.epochs=9");
  EXPECT_EQ(optimizer.lr, 0.05f);
  EXPECT_EQ(trainer.epochs, 9);
  EXPECT_EQ(sections.ToToml().find("[all]"), sections.ToToml().rfind("[all]"));
}

// Whatever the text is: the value, or a UsageError, and then the old value stays.
TEST(Sections, SurviveAnyAssignment) {
  const std::string pieces = "0123456789+-.eE_,[]\"= truefalsinx\xC3\xA4";
  const std::vector<std::string> paths = {
      "trainer.batch", "trainer.epochs", "trainer.seed",         "trainer.deterministic",
      "optimizer.lr",  "optimizer.mean", "optimizer.milestones", "optimizer.name"};
  std::mt19937_64 random(5);
  int refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    Recipe r;
    std::string assignment = paths[random() % paths.size()] + "=";
    for (size_t n = random() % 12; n > 0; --n) assignment += pieces[random() % pieces.size()];
    const std::string before = r.sections.ToToml();
    try {
      r.sections.SetAssignment(assignment);
      Recipe again;
      again.Load(r.sections.ToToml());
      ASSERT_EQ(again.sections.ToToml(), r.sections.ToToml()) << assignment;
    } catch (const UsageError&) {
      ++refused;
      ASSERT_EQ(r.sections.ToToml(), before) << assignment;
    }
  }
  EXPECT_GT(refused, 10'000);
  EXPECT_LT(refused, 20'000);
}

struct AnyNumbers {
  float f = 0;
  double d = 0;
  int64_t i = 0;
  uint64_t u = 0;
  std::string s;
  std::vector<double> list;
};

void Describe(OptionTable<AnyNumbers>& t) {
  t.Add("f", &AnyNumbers::f, Any(), Binds::kNothing, "");
  t.Add("d", &AnyNumbers::d, Any(), Binds::kNothing, "");
  t.Add("i", &AnyNumbers::i, Any(), Binds::kNothing, "");
  t.Add("u", &AnyNumbers::u, Any(), Binds::kNothing, "");
  t.Add("s", &AnyNumbers::s, Any(), Binds::kNothing, "");
  t.Add("list", &AnyNumbers::list, Any(), Binds::kNothing, "");
}

TEST(Sections, RoundTripEveryBit) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 3000; ++round) {
    AnyNumbers out;
    Sections write;
    write.Add("x", out);
    do out.f = std::bit_cast<float>(static_cast<uint32_t>(random()));
    while (!std::isfinite(out.f));
    do out.d = std::bit_cast<double>(random());
    while (!std::isfinite(out.d));
    out.i = static_cast<int64_t>(random());
    out.u = random();
    for (int k = 0; k < 5; ++k) out.s += static_cast<char>(random() % 128);
    out.list = {out.d, static_cast<double>(round)};
    AnyNumbers in;
    Sections read;
    read.Add("x", in);
    read.Load(ParseToml(write.ToToml(), "x.toml"), "x.toml");
    ASSERT_EQ(std::bit_cast<uint32_t>(in.f), std::bit_cast<uint32_t>(out.f));
    ASSERT_EQ(std::bit_cast<uint64_t>(in.d), std::bit_cast<uint64_t>(out.d));
    ASSERT_EQ(in.i, out.i);
    ASSERT_EQ(in.u, out.u);
    ASSERT_EQ(in.s, out.s);
    ASSERT_EQ(in.list, out.list);
  }
}

}  // namespace
}  // namespace trireme
