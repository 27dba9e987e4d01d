#include "base/child_process.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>

namespace trireme {
namespace {

int CodeOf(ChildProcess& child) {
  for (;;) {
    if (const auto code = child.Poll()) return *code;
  }
}

int CodeOf(const std::string& program, std::vector<std::string> words, int output = -1) {
  ChildProcess child(program, std::move(words), output);
  return CodeOf(child);
}

TEST(ChildProcess, ItsEndHasANumber) {
  EXPECT_EQ(CodeOf("/bin/sh", {"sh", "-c", "exit 7"}), 7);
  EXPECT_EQ(CodeOf("true", {"true"}), 0);  // in PATH
  EXPECT_EQ(CodeOf("/nonexistent/program", {"program"}), 127);
  EXPECT_EQ(CodeOf("/bin/sh", {"sh", "-c", "kill -9 $$"}), 128 + SIGKILL);
  ChildProcess child("sleep", {"sleep", "1000"}, -1);
  EXPECT_EQ(child.Poll(), std::nullopt);
  child.Send(SIGTERM);
  EXPECT_EQ(CodeOf(child), 128 + SIGTERM);
  EXPECT_EQ(child.Poll(), 128 + SIGTERM);  // and stays so
}

// A file without a name.
class Paper {
 public:
  ~Paper() { std::fclose(file_); }
  int fd() const { return fileno(file_); }
  std::string Read() const {
    std::string text(1000, '\0');
    text.resize(size_t(std::max<ssize_t>(0, pread(fd(), text.data(), text.size(), 0))));
    return text;
  }

 private:
  std::FILE* const file_ = std::tmpfile();
};

TEST(ChildProcess, ReadsNothingAndPrintsIntoTheFile) {
  const Paper paper;
  EXPECT_EQ(
      CodeOf("/bin/sh", {"sh", "-c", "cat; echo out; echo err >&2; echo $0", "x y"}, paper.fd()),
      0);
  EXPECT_EQ(paper.Read(), "out\nerr\nx y\n");
}

TEST(ChildProcess, GoesWithItsOwner) {
  const Paper paper;
  pid_t pid = 0;
  {
    ChildProcess child("/bin/sh", {"sh", "-c", "echo $$; exec sleep 1000"}, paper.fd());
    while (!paper.Read().ends_with('\n')) ASSERT_EQ(child.Poll(), std::nullopt);
    pid = pid_t(std::stol(paper.Read()));
    EXPECT_EQ(kill(pid, 0), 0);
  }
  EXPECT_EQ(kill(pid, 0), -1);
  EXPECT_EQ(errno, ESRCH);
}

TEST(FindProgram, LooksThroughTheFolders) {
  EXPECT_EQ(FindProgram("sh", "/nonexistent::/bin"), "/bin/sh");
  EXPECT_EQ(FindProgram("sh", ""), "");
  EXPECT_EQ(FindProgram("passwd", "/etc"), "");  // a file, but none to run
}

}  // namespace
}  // namespace trireme
