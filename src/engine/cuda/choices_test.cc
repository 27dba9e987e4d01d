// Needs no card.
#include "engine/cuda/choices.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "base/files.h"

namespace trireme::cuda {
namespace {

TEST(ChoicesTest, AreKeptForTheSameTarget) {
  const TemporaryDirectory folder;
  const std::string path = folder / "some/where/plans.txt";
  {
    Choices choices(path, "card, versions");
    EXPECT_FALSE(choices.Find("conv 1 2 3"));
    choices.Set("conv 1 2 3", 4);
    choices.Set("product 5", 0);
    EXPECT_EQ(choices.Find("conv 1 2 3"), 4);
    choices.Save();
  }
  EXPECT_EQ(Choices(path, "card, versions").Find("conv 1 2 3"), 4);
  EXPECT_EQ(Choices(path, "card, versions").Find("product 5"), 0);
  EXPECT_FALSE(Choices(path, "card, newer versions").Find("conv 1 2 3"));
}

TEST(ChoicesTest, WhatOthersSavedMeanwhileStays) {
  const TemporaryDirectory folder;
  const std::string path = folder / "plans.txt";
  Choices one(path, "card"), other(path, "card");
  one.Set("a", 1);
  one.Set("both", 1);
  other.Set("b", 2);
  other.Set("both", 2);
  one.Save();
  other.Save();
  const Choices later(path, "card");
  EXPECT_EQ(later.Find("a"), 1);
  EXPECT_EQ(later.Find("b"), 2);
  EXPECT_EQ(later.Find("both"), 2);
}

TEST(ChoicesTest, ABrokenFileIsIgnoredAndWrittenAnew) {
  const TemporaryDirectory folder;
  const std::string path = folder / "plans.txt";
  Choices(path, "card").Save();
  const std::string good = ReadFile(path);
  for (const std::string& broken :
       {std::string(), std::string("nonsense"), good + "conv = x\n", good + "conv = -1\n",
        good + "conv 3\n", good + "conv = 3", std::string("\0\xff\n\n\n", 5)}) {
    ReplaceFile(path, broken);
    Choices choices(path, "card");
    EXPECT_FALSE(choices.Find("conv")) << broken;
    choices.Set("conv", 7);
    choices.Save();
    EXPECT_EQ(Choices(path, "card").Find("conv"), 7) << broken;
  }
}

TEST(ChoicesTest, AFolderThatCannotBeWrittenIsNoError) {
  Choices choices("/dev/null/plans.txt", "card");
  choices.Set("a", 1);
  choices.Save();
  EXPECT_EQ(choices.Find("a"), 1);
  Choices nowhere("", "card");
  nowhere.Save();
}

TEST(ChoicesTest, TheFileLiesWhereCachesDo) {
  setenv("XDG_CACHE_HOME", "/caches", 1);
  const std::string one = ChoicesFile("card, versions");
  EXPECT_TRUE(one.starts_with("/caches/trireme/")) << one;
  EXPECT_NE(ChoicesFile("card, newer versions"), one);
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", "/home/me", 1);
  EXPECT_TRUE(ChoicesFile("card").starts_with("/home/me/.cache/trireme/"));
  unsetenv("HOME");
  EXPECT_EQ(ChoicesFile("card"), "");
}

}  // namespace
}  // namespace trireme::cuda
