#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/files.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

class ReplacementTest : public testing::Test {
 protected:
  std::string At(const std::string& name) const { return folder_ / name; }
  size_t Entries() const {
    return size_t(std::distance(fs::directory_iterator(folder_.path()), {}));
  }

  const TemporaryDirectory folder_;
};

TEST_F(ReplacementTest, WithoutCommitTheOldFileStays) {
  ReplaceFile(At("a"), "old");
  {
    Replacement replacement(At("a"));
    replacement.file().Write("new");
    EXPECT_EQ(ReadFile(At("a")), "old");
  }
  EXPECT_EQ(ReadFile(At("a")), "old");
  EXPECT_EQ(Entries(), 1u);
  Replacement replacement(At("a"));
  replacement.file().Write("new");
  replacement.Commit();
  EXPECT_EQ(ReadFile(At("a")), "new");
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ReplacementTest, FollowsLinks) {
  MakeDirectories(At("far"));
  ReplaceFile(At("far/page"), "old");
  fs::create_symlink("far/page", At("latest"));
  fs::create_symlink(At("latest"), At("chain"));
  ReplaceFile(At("chain"), "new");
  EXPECT_TRUE(fs::is_symlink(At("latest")) && fs::is_symlink(At("chain")));
  EXPECT_EQ(ReadFile(At("far/page")), "new");
  EXPECT_EQ(size_t(std::distance(fs::directory_iterator(At("far")), {})), 1u);
}

TEST_F(ReplacementTest, ALinkThatLeadsNowhereGetsItsFile) {
  fs::create_symlink("later", At("link"));
  ReplaceFile(At("link"), "now");
  EXPECT_TRUE(fs::is_symlink(At("link")));
  EXPECT_EQ(ReadFile(At("later")), "now");
}

TEST_F(ReplacementTest, NamesLinksThatTurnInCirclesAndFolders) {
  fs::create_symlink("b", At("a"));
  fs::create_symlink("a", At("b"));
  EXPECT_THROW(ReplaceFile(At("a"), "x"), Error);
  EXPECT_THROW(ReplaceFile(folder_.path(), "x"), Error);
  EXPECT_THROW(Replacement::Check(folder_.path()), Error);
  EXPECT_THROW(Replacement::Check(At("no/file")), Error);
  EXPECT_EQ(Entries(), 2u);
}

TEST_F(ReplacementTest, ACheckLeavesNothing) {
  Replacement::Check(At("new"));
  Replacement::Check("/dev/null");
  EXPECT_EQ(Entries(), 0u);
}

// Devices of one's own kind cannot be made without privileges; a pipe stands for them.
TEST_F(ReplacementTest, APipeIsWrittenInto) {
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  std::string heard;
  {
    std::jthread reader([&] { heard = ReadFile(At("pipe")); });
    ReplaceFile(At("pipe"), "through");
  }
  EXPECT_EQ(heard, "through");
  EXPECT_TRUE(fs::is_fifo(At("pipe")));
  EXPECT_EQ(Entries(), 1u);
}

TEST_F(ReplacementTest, AFullDeviceIsNamedAndStays) {
  try {
    ReplaceFile("/dev/full", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "/dev/full: cannot write: No space left on device");
  }
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
}

// As /dev/stdout, which leads there.
TEST_F(ReplacementTest, AnOpenFileIsWrittenIntoAtItsEnd) {
  OutputFile log(At("log"));
  log.Write("before\n");
  FILE* same = std::fopen(At("log").c_str(), "a");
  ReplaceFile("/proc/self/fd/" + std::to_string(fileno(same)), "page\n");
  std::fclose(same);
  log.Close();
  EXPECT_EQ(ReadFile(At("log")), "before\npage\n");
}

TEST_F(ReplacementTest, WhatAKilledWriterLeftIsRemovedByTheNextOne) {
  const pid_t child = fork();
  if (child == 0) {
    Replacement replacement(At("big.pack"));
    replacement.file().Write("half");
    raise(SIGKILL);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(Entries(), 1u);
  const std::string other = NameBeside(At("other.pack"));
  OutputFile(other).Write("another file's");

  Replacement living(At("big.pack"));  // has a lock
  ReplaceFile(At("big.pack"), "whole");
  EXPECT_EQ(Entries(), 3u) << "the pack, the other one's, and the one of who is still at it";
  EXPECT_TRUE(Exists(other));
  living.file().Write("later");
  living.Commit();
  EXPECT_EQ(ReadFile(At("big.pack")), "later");
}

}  // namespace
}  // namespace trireme
