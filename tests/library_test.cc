// The program of docs/library.md, built outside the tree by other compilers than this one's choice.
#include <filesystem>

#include "base/text.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class LibraryTest : public WholeTest {
 protected:
  void SetUp() override {
    Shell(std::string(TRIREME_CMAKE) + " --install " TRIREME_BUILD_DIR " --component library" +
          " --prefix " + At("elsewhere"));
    // What was installed may be moved.
    std::filesystem::rename(At("elsewhere"), At("usr"));
    Write("rings.cc", Block("cpp"));
    Write("CMakeLists.txt", Block("cmake"));
  }

  // The first block of its kind in the document.
  static std::string Block(const std::string& kind) {
    const std::string text = ReadFile(TRIREME_SOURCE_DIR "/docs/library.md");
    const std::string begin = "\n```" + kind + "\n";
    const size_t at = text.find(begin);
    if (at == text.npos) return "";
    const size_t first = at + begin.size();
    return text.substr(first, text.find("```\n", first) - first);
  }

  void ExpectItLearns(const std::string& program, const std::string& run) {
    const std::vector<std::string> lines = Split(Shell(At(program) + " " + run), '\n');
    ASSERT_GE(lines.size(), 4u);
    EXPECT_TRUE(lines[0].starts_with("epoch 1: test accuracy 0.")) << lines[0];
    EXPECT_EQ(lines[lines.size() - 3], "inner");
    EXPECT_EQ(lines[lines.size() - 2], "outer");
    EXPECT_TRUE(IsRun(run));
  }

  void BuildWith(const std::string& compiler) {
    const std::string cmake = std::string(TRIREME_CMAKE) + " ";
    Shell(cmake + "-S . -B out -G Ninja -DCMAKE_PREFIX_PATH=" + At("usr") +
          " -DCMAKE_CXX_COMPILER=" + compiler + " -DCMAKE_CXX_FLAGS='-Wall -Wextra -Werror' && " +
          cmake + "--build out");
    ExpectItLearns("out/rings", "rings");
  }

  static bool Has(const char* program) {
    return std::system((std::string("command -v ") + program + " > /dev/null").c_str()) == 0;
  }
};

TEST_F(LibraryTest, FindPackageWithGcc) { BuildWith("g++"); }

TEST_F(LibraryTest, FindPackageWithClang) {
  for (const char* name : {"clang++", "clang++-19"}) {
    if (Has(name)) return BuildWith(name);
  }
  GTEST_SKIP() << "clang++ is not installed";
}

TEST_F(LibraryTest, PkgConfig) {
  if (!Has("pkg-config")) GTEST_SKIP() << "pkg-config is not installed";
  const std::string found =
      Shell("dirname $(find " + At("usr") + " -name trireme.pc) | tr -d '\\n'");
  const std::string env = "PKG_CONFIG_PATH=" + found + ":$PKG_CONFIG_PATH ";
  Shell(env + "sh -c 'g++ -std=c++20 rings.cc -o rings $(pkg-config --cflags --libs trireme)'");
  ExpectItLearns("rings", "run");
  // The program reads what the library wrote.
  Write("points.csv", "0.9,0.1\n0,-2\n");
  EXPECT_NE(Succeed({"predict", "run", "points.csv"}).out.find("inner"), std::string::npos);
  Refuse({"eval", "run"}, 1, {"memory", "--data csv:FILE"});
  const Outcome resumed = Run({"train", "--resume", "run"});  // may also say that builds differ
  EXPECT_EQ(resumed.exit_code, 1);
  EXPECT_NE(resumed.err.find("train on in that program"), std::string::npos) << resumed.err;
}

// What others include must not bring names of ours, nor of libraries that they may not have.
TEST_F(LibraryTest, TheHeaderStandsAlone) {
  Write("alone.cc", "#include <trireme/trireme.h>\nint main() { trireme::Recipe recipe; }\n");
  const std::string includes =
      Shell("g++ -std=c++20 -M -I usr/include alone.cc | tr ' ' '\\n' | grep -c trireme");
  EXPECT_EQ(includes, "1\n");
}

}  // namespace
}  // namespace trireme::whole
