#include "base/files.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

std::string MessageOf(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

size_t EntriesIn(const std::string& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), {}));
}

TEST(Files, ComeBackAsWritten) {
  const TemporaryDirectory folder;
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{4096}, size_t{3000001}}) {
    std::string content(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) content[i] = static_cast<char>(i * 7919 >> 3);
    ReplaceFile(folder / "a", content);
    EXPECT_EQ(ReadFile(folder / "a"), content);
  }
  EXPECT_EQ(EntriesIn(folder.path()), 1u) << "nothing is left beside the file";
}

TEST(Files, ReadRefusesWhatIsNotAFileOrTooLarge) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(Contains(MessageOf([&] { ReadFile(folder.path()); }), "is a folder"));
  EXPECT_TRUE(Contains(MessageOf([&] { InputFile file(folder.path()); }), "is a folder"));
  EXPECT_TRUE(Contains(MessageOf([&] { InputFile file("/dev/null"); }), "not a regular file"));
  const std::string missing = MessageOf([&] { ReadFile(folder / "none"); });
  EXPECT_TRUE(Contains(missing, folder / "none") && Contains(missing, "No such file")) << missing;
  ReplaceFile(folder / "ten", "0123456789");
  EXPECT_EQ(ReadFile(folder / "ten", 10), "0123456789");
  EXPECT_TRUE(Contains(MessageOf([&] { ReadFile(folder / "ten", 9); }), "the limit is 9"));
  EXPECT_TRUE(Contains(MessageOf([&] { ReadFile("/dev/zero", 1 << 20); }), "the limit is 1048576"));
}

TEST(Files, ReadTakesFilesThatDoNotKnowTheirSize) {
  EXPECT_TRUE(Contains(ReadFile("/proc/self/status"), "Pid:"));
}

TEST(Files, ReadAtSaysWhereAFileEnds) {
  const TemporaryDirectory folder;
  ReplaceFile(folder / "five", "01234");
  const InputFile file(folder / "five");
  char two[2];
  file.ReadAt(3, two, 2);
  EXPECT_EQ(std::string(two, 2), "34");
  EXPECT_TRUE(Contains(MessageOf([&] { file.ReadAt(4, two, 2); }), "ends at byte 5"));
}

TEST(Files, WritingAtAPositionLeavesTheEndWhereItWas) {
  const TemporaryDirectory folder;
  OutputFile file(folder / "a");
  file.Write("....abc");
  file.WriteAt(0, "head", 4);
  file.Write("def");
  file.Close();
  EXPECT_EQ(ReadFile(folder / "a"), "headabcdef");
  OutputFile more(folder / "a", OutputFile::Start::kAtEnd);
  more.Write("!");
  more.Close();
  EXPECT_EQ(ReadFile(folder / "a"), "headabcdef!");
}

TEST(Files, AFullDiskIsNamed) {
  OutputFile full("/dev/full");
  const std::string message = MessageOf([&] { full.Write("x"); });
  EXPECT_EQ(message, "/dev/full: cannot write: No space left on device");
}

// A limit on the size of files fails in the middle of a write, like a full disk does.
TEST(Files, AFailedReplacementLeavesTheOldFile) {
  const TemporaryDirectory folder;
  ReplaceFile(folder / "a", "old");
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit small{100000, 100000};
    setrlimit(RLIMIT_FSIZE, &small);
    const std::string message =
        MessageOf([&] { ReplaceFile(folder / "a", std::string(1 << 20, 'x')); });
    _exit(Contains(message, "cannot write") ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(ReadFile(folder / "a"), "old");
  EXPECT_EQ(EntriesIn(folder.path()), 1u);
}

TEST(Files, ReplaceNamesAFolderThatIsMissing) {
  const TemporaryDirectory folder;
  EXPECT_TRUE(Contains(MessageOf([&] { ReplaceFile(folder / "no/a", "x"); }), "No such file"));
}

TEST(Files, FoldersAreMadeOnceAndNeverOverAFile) {
  const TemporaryDirectory folder;
  MakeDirectories(folder / "a/b/c");
  MakeDirectories(folder / "a/b/c");
  EXPECT_TRUE(fs::is_directory(folder / "a/b/c"));
  ReplaceFile(folder / "f", "");
  EXPECT_NE(MessageOf([&] { MakeDirectories(folder / "f"); }), "no error");
  EXPECT_NE(MessageOf([&] { MakeDirectories(folder / "f/g"); }), "no error");
  fs::create_symlink("gone", folder / "link");
  EXPECT_EQ(MessageOf([&] { MakeDirectories(folder / "link"); }),
            folder / "link" + ": is a dangling link to gone");
}

TEST(Files, LeftoversGoAndNothingElse) {
  const TemporaryDirectory folder;
  MakeDirectories(NameBeside(folder / "dir") + "/inside");
  OutputFile(NameBeside(folder / "file")).Write("half");
  ReplaceFile(folder / ".hidden", "stays");
  ReplaceFile(folder / "x.writing-1", "stays");
  RemoveLeftovers(folder.path());
  EXPECT_EQ(EntriesIn(folder.path()), 2u);
  RemoveTree(folder / "x.writing-1");
  RemoveTree(folder / "never was");
  EXPECT_EQ(EntriesIn(folder.path()), 1u);
}

TEST(Files, ATemporaryFolderDisappears) {
  std::string path;
  {
    const TemporaryDirectory folder;
    path = folder.path();
    MakeDirectories(folder / "a/b");
    EXPECT_TRUE(Exists(path));
  }
  EXPECT_FALSE(Exists(path));
}

TEST(NamelessFile, IsReadByItsPathAndHasNoName) {
  TemporaryDirectory folder;
  setenv("TMPDIR", folder.path().c_str(), 1);
  const NamelessFile file("some words");
  unsetenv("TMPDIR");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
  EXPECT_EQ(ReadFile(file.path()), "some words");
}

}  // namespace
}  // namespace trireme
