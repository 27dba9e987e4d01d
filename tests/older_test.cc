// Run folders and recipes of older programs stay good within a major version: tests/older holds,
// for each version, a run as that program left it. What a newer one reads, resumes and reports is
// the same run.
#include <fmt/format.h>

#include <filesystem>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

namespace fs = std::filesystem;

class OlderTest : public WholeTest {
 protected:
  OlderTest() {
    const fs::path older = fs::path(TRIREME_SOURCE_DIR) / "tests/older";
    for (const auto& entry : fs::directory_iterator(older)) {
      versions_.push_back(entry.path().filename().string());
      fs::copy(entry.path() / "run", At(versions_.back()),
               fs::copy_options::recursive | fs::copy_options::copy_symlinks);
    }
    EXPECT_FALSE(versions_.empty());
  }

  std::vector<std::string> versions_;
};

TEST_F(OlderTest, RunsAreEvaluated) {
  for (const std::string& run : versions_) {
    SCOPED_TRACE(run);
    const Json now = ParseJson(Succeed({"eval", run, "--json"}).out, "eval");
    // Another processor may round one sample to another class.
    EXPECT_NEAR(now.At("test_accuracy").AsDouble(), Number(run, "test_accuracy"), 1.01 / 30);
    EXPECT_NEAR(now.At("test_loss").AsDouble(), Number(run, "test_loss"), 1e-4);
  }
}

TEST_F(OlderTest, RunsGoOn) {
  for (const std::string& run : versions_) {
    SCOPED_TRACE(run);
    const double steps = Number(run, "steps");
    const size_t epochs = Epochs(run).size();
    Succeed({"train", "--resume", run, "--steps", fmt::format("{}", steps + 20)});
    EXPECT_EQ(Number(run, "steps"), steps + 20);
    EXPECT_GT(Epochs(run).size(), epochs);
    EXPECT_GE(Number(run, "test_accuracy"), 0.8);
  }
}

TEST_F(OlderTest, RunsAreReportedAndListed) {
  for (const std::string& run : versions_) {
    SCOPED_TRACE(run);
    Succeed({"report", run});
    EXPECT_TRUE(Exists(At(run + "/report.html")));
    EXPECT_NE(Succeed({"watch", run, "--once"}).out.find("test accuracy"), std::string::npos);
    Succeed({"export", run, "--onnx", run + ".onnx"});
  }
  const std::string list = Succeed({"list", "runs", "."}).out;
  for (const std::string& run : versions_) EXPECT_NE(list.find(run), std::string::npos) << list;
}

// Every key of then is a key of now, with the same meaning of its value.
TEST_F(OlderTest, RecipesTrain) {
  for (const std::string& run : versions_) {
    SCOPED_TRACE(run);
    fs::copy_file(At(run + "/config.toml"), At("recipe.toml"),
                  fs::copy_options::overwrite_existing);
    Succeed({"train", "recipe.toml", "--out", "again"});
    EXPECT_EQ(Number("again", "steps"), Number(run, "steps"));
    EXPECT_NEAR(Number("again", "test_loss"), Number(run, "test_loss"), 1e-3);
    fs::remove_all(At("again"));
  }
}

}  // namespace
}  // namespace trireme::whole
