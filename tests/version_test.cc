// What was built is known: to who asks, to a run, to the other ranks and to who resumes.
#include <fmt/format.h>

#include <regex>

#include "base/text.h"
#include "support/ranks_test.h"

namespace trireme::whole {
namespace {

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";

class VersionTest : public RanksTest {
 protected:
  // The program as another commit would have built it, in this test's folder.
  Words OtherBuild() {
    Running copy({At("other")}, At(""), {"cp"});
    EXPECT_EQ(copy.Wait(kTimeout).exit_code, 0);
    std::smatch found;
    const std::string text = Succeed({"--version"}).out;
    EXPECT_TRUE(std::regex_search(text, found, std::regex("commit ([0-9a-z]+)"))) << text;
    const std::string commit = found[1];
    std::string changed = commit;
    changed[0] = commit[0] == '0' ? '1' : '0';
    std::string program = Read("other");
    for (size_t at = 0; (at = program.find(commit, at)) != program.npos; ++at) {
      program.replace(at, changed.size(), changed);
    }
    Write("other", program);
    Shell("chmod +x other");
    return {"sh", "-c", "shift; exec ./other \"$@\"", "sh"};
  }

  // The words of the file that cmake/build_info.cmake writes of the tree `source`.
  std::string BuildInfo(const std::string& source) {
    const std::string out = At("info.cc");
    Shell(fmt::format("rm -f {}; {} -D SOURCE={} -D VERSION=0.1.0 -D OUTPUT={} -P {}", out,
                      TRIREME_CMAKE, At(source), out,
                      TRIREME_SOURCE_DIR "/cmake/build_info.cmake"));
    std::string text = ReadFile(out);
    std::smatch found;
    const std::regex words("Version\\(\\) \\{ return \"(.*)\"; \\}\n.*Commit.*return \"(.*)\"");
    EXPECT_TRUE(std::regex_search(text, found, words)) << text;
    return found[1].str() + " " + found[2].str();
  }
};

// What not every machine has is opened by plugins, while the program runs.
TEST_F(VersionTest, LinksNothingThatAMachineMayLack) {
  const Words lists = {"sh", "-c", "LD_TRACE_LOADED_OBJECTS=1 exec \"$@\"", "sh"};
  const std::string libraries = Succeed({"--version"}, lists).out;
  EXPECT_NE(libraries.find("libc.so"), libraries.npos) << libraries;
  for (const char* name : {"libmpi", "libfabric", "libcuda", "libcudnn", "libnccl"}) {
    EXPECT_EQ(libraries.find(name), libraries.npos) << libraries;
  }
}

TEST_F(VersionTest, IsInTheSummaryAndInTheStarts) {
  Succeed({"train", "--steps", "2", "--quiet", "--out", "a"});
  const Json summary = Summary("a"), start = ParseJson(Read("a/starts.jsonl"), "starts");
  for (const Json* json : {&summary, &start}) {
    const std::string commit = json->At("commit").AsString();
    EXPECT_TRUE(std::regex_match(commit, std::regex("unknown|[0-9a-f]{40}(-dirty)?"))) << commit;
    const std::string shown = commit.substr(0, 12);
    const std::string said = json->At("version").AsString() + " (commit " + shown;
    EXPECT_TRUE(Succeed({"--version"}).out.starts_with("trireme " + said)) << said;
  }
}

TEST_F(VersionTest, ABenchmarkSaysWhatWasMeasuredWhere) {
  const Words small = {"bench", "gemm", "--sizes", "8x8x8", "--threads", "1", "--repeat", "1"};
  const Json results = ParseJson(Succeed(small + Words{"--json"}).out, "bench");
  EXPECT_FALSE(results.Items().empty());
  for (const Json& result : results.Items()) {
    EXPECT_FALSE(result.At("machine").AsString().empty());
    EXPECT_GE(result.At("cores").AsInt(), 1);
    EXPECT_GE(result.At("load").AsDouble(), 0);
    EXPECT_FALSE(result.At("commit").AsString().empty());
  }
}

TEST_F(VersionTest, RanksOfTwoBuildsDoNotTrainTogether) {
  const Words other = OtherBuild();
  const int port = FreePort();
  const auto start = [&](int rank, const Words& launcher) {
    return Start({"train", "--quiet", "--steps", "5", "--out", "a"},
                 Words{"env", fmt::format("TRIREME_RANK={}", rank), "TRIREME_WORLD=2",
                       fmt::format("TRIREME_MEET=127.0.0.1:{}", port), "TRIREME_SECRET=oars"} +
                     launcher);
  };
  std::unique_ptr<Running> ranks[] = {start(0, {}), start(1, other)};
  for (auto& rank : ranks) {
    const Outcome outcome = rank->Wait(kTimeout);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_NE(outcome.err.find("rank 1's version of trireme differs from rank 0's"),
              outcome.err.npos)
        << outcome.err;
  }
}

TEST_F(VersionTest, AResumeByAnotherBuildIsToldAndNotRefused) {
  Succeed({"train", "--steps", "5", "--quiet", "--out", "a"}, OtherBuild());
  const std::string told = "this run was trained with trireme ";
  const Words on = {"train", "--quiet", "--resume", "a", "--steps"};
  EXPECT_NE(Succeed(on + Words{"8"}).err.find(told), std::string::npos);
  EXPECT_EQ(Succeed(on + Words{"9"}).err.find(told), std::string::npos);
}

TEST_F(VersionTest, ComesFromGitFromAnArchiveOrIsUnknown) {
  const std::string git = "git -C " + At("tree") + " -c user.name=a -c user.email=a@b ";
  Shell("mkdir -p " + At("tree/cmake"));
  EXPECT_EQ(BuildInfo("tree"), "0.1.0 unknown");
  Write("tree/cmake/archive_commit.txt", "$Format:%H$\n$Format:%(describe:tags)$\n");
  Write("tree/.gitattributes", "cmake/archive_commit.txt export-subst\n");
  EXPECT_EQ(BuildInfo("tree"), "0.1.0 unknown");

  Shell(git + "init -q && " + git + "add -A && " + git + "commit -qm first");
  const auto head = [&] { return std::string(Trim(Shell(git + "rev-parse HEAD"))); };
  EXPECT_EQ(BuildInfo("tree"), "0.1.0 " + head());
  Write("tree/.gitattributes", "cmake/archive_commit.txt export-subst\n# changed\n");
  EXPECT_EQ(BuildInfo("tree"), "0.1.0 " + head() + "-dirty");
  Shell(git + "tag v0.2.0 && " + git + "commit -qam second");
  EXPECT_EQ(BuildInfo("tree"), "0.2.0-1-g" + head().substr(0, 7) + " " + head());

  // An archive that was unpacked inside another repository.
  Shell("mkdir " + At("tree/unpacked") + " && " + git + "archive HEAD | tar -x -C " +
        At("tree/unpacked"));
  EXPECT_EQ(BuildInfo("tree/unpacked"), "0.2.0-1-g" + head().substr(0, 7) + " " + head());
  Write("tree/unpacked/cmake/archive_commit.txt", kCommit + "\n\n");
  EXPECT_EQ(BuildInfo("tree/unpacked"), "0.1.0 " + kCommit);
}

}  // namespace
}  // namespace trireme::whole
