#include "engine/cuda/library.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/files.h"
#include "engine/cuda/cards.h"

namespace trireme::cuda {
namespace {

// The made plugin, with this wrong with it.
class BorderTest : public testing::Test {
 protected:
  static void Set(const char* wrong) { setenv("TRIREME_MADE_PLUGIN", wrong, 1); }
  ~BorderTest() override { unsetenv("TRIREME_MADE_PLUGIN"); }

  static std::string ErrorOf(const std::string& path) {
    try {
      OpenTable(path);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  static void ExpectError(const std::string& path, std::string_view part) {
    const std::string error = ErrorOf(path);
    EXPECT_NE(error.find(part), error.npos) << error;
    EXPECT_EQ(error.find('\n'), error.npos);
  }
};

TEST_F(BorderTest, APluginOfThisBuildIsTaken) {
  EXPECT_EQ(OpenTable(TRIREME_MADE_PLUGIN_FILE).bytes, sizeof(Table));
}

TEST_F(BorderTest, AnotherBuildIsRefusedAndSaysToBuildBoth) {
  Set("id");
  ExpectError(TRIREME_MADE_PLUGIN_FILE,
              "was not built together with this program; build the "
              "program and the plugin together: cmake");
  for (const char* wrong : {"version", "size"}) {
    Set(wrong);
    ExpectError(TRIREME_MADE_PLUGIN_FILE, "belongs to a different version of trireme; build the");
  }
}

TEST_F(BorderTest, WhatIsNoPluginIsRefused) {
  const TemporaryDirectory folder;
  ExpectError(folder / "none.so", "cannot load the CUDA plugin");
  ReplaceFile(folder / "text.so", "not a library");
  ExpectError(folder / "text.so", "cannot load the CUDA plugin");
  Dl_info info;
  ASSERT_NE(dladdr(dlsym(RTLD_DEFAULT, "gnu_get_libc_version"), &info), 0);
  ExpectError(std::filesystem::canonical(info.dli_fname), "is not a plugin for CUDA");
}

TEST_F(BorderTest, APluginIsNamedOrLiesBesideTheProgram) {
  const TemporaryDirectory folder;
  EXPECT_EQ(FindPlugin("a.so", folder.path()), "a.so");
  try {
    FindPlugin(nullptr, folder.path());
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("there is no trireme-cuda.so in " + folder.path()), text.npos) << text;
    EXPECT_NE(text.find("install nvcc 12.4 or newer and cuDNN 9"), text.npos) << text;
  }
  ReplaceFile(folder / "trireme-cuda.so", "");
  EXPECT_EQ(FindPlugin("", folder.path()), folder / "trireme-cuda.so");
}

TEST_F(BorderTest, ASurveyCrossesTheProcesses) {
  const Survey survey = AskInChild(TRIREME_MADE_PLUGIN_FILE);
  EXPECT_EQ(survey.problem, "");
  EXPECT_EQ(survey.versions, "driver 7, library 8");
  ASSERT_EQ(survey.cards.size(), 2u);
  EXPECT_EQ(survey.cards[0].name, "Made 1");
  EXPECT_EQ(survey.cards[0].target, "made one");
  EXPECT_EQ(survey.cards[0].memory_bytes, uint64_t{3} << 30);
  EXPECT_EQ(survey.cards[0].problem, "");
  EXPECT_EQ(survey.cards[1].problem, "Made 2 is too old; buy another");
}

TEST_F(BorderTest, WhateverHappensInTheChildIsSaidInOneLine) {
  const auto problem = [](const char* wrong, double patience_s) {
    Set(wrong);
    return AskInChild(TRIREME_MADE_PLUGIN_FILE, patience_s).problem;
  };
  EXPECT_EQ(problem("empty", 60), "there is no card; plug one in");
  EXPECT_TRUE(AskInChild(TRIREME_MADE_PLUGIN_FILE).absent);
  EXPECT_EQ(problem("throw", 60), "there is no library of this kind; install it");
  EXPECT_FALSE(AskInChild(TRIREME_MADE_PLUGIN_FILE).absent);
  EXPECT_NE(problem("crash", 60).find("ended with signal 6"), std::string::npos);
  EXPECT_NE(problem("quit", 60).find("did not say which cards there are"), std::string::npos);
  EXPECT_NE(problem("hang", 0.2).find("took more than 0 s"), std::string::npos);
  EXPECT_NE(problem("id", 60).find("was not built together"), std::string::npos);
}

// Libraries that the program has loaded may catch signals.
TEST_F(BorderTest, ACrashOfTheChildIsSeenWhoeverCatchesSignals) {
  const auto before = signal(SIGABRT, [](int) { _exit(3); });
  Set("crash");
  const std::string problem = AskInChild(TRIREME_MADE_PLUGIN_FILE).problem;
  signal(SIGABRT, before);
  EXPECT_NE(problem.find("ended with signal 6"), problem.npos) << problem;
}

// The survey of this machine is asked for once in a process: these are one test.
TEST_F(BorderTest, TheRowSaysWhatTheSurveyFound) {
  setenv("TRIREME_CUDA_PLUGIN", TRIREME_MADE_PLUGIN_FILE, 1);
  EXPECT_EQ(Targets(), std::vector<std::string>{"made one"});
  EXPECT_EQ(Missing({}), "");
  EXPECT_EQ(Missing(0), "");
  EXPECT_EQ(Missing(1), "Made 2 is too old; buy another");
  EXPECT_EQ(Missing(2), "this machine has 2 cards; choose cuda:0 to cuda:1");
  EXPECT_EQ(Details(),
            (std::vector<std::string>{"cuda:0: Made 1, 3.0 GiB",
                                      "cuda:1: Made 2, 5.0 GiB; Made 2 is too old; buy another",
                                      "driver 7, library 8"}));
  for (const Precision precision : kPrecisions) EXPECT_EQ(WhyNot(precision), "");
  // An error of the plugin's own copy of the class is one for the program, too.
  try {
    Make(Precision::kF32, {.memory_mb = 5}, 0, 0);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "card 0 with 5 MB exists on paper only");
  }
  EXPECT_THROW(Make(Precision::kF32, {}, 1, 0), Error);
}

}  // namespace
}  // namespace trireme::cuda
