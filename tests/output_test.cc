// Where results go, whatever stands there, and what happens when they cannot.
#include <sys/stat.h>

#include <filesystem>

#include "support/whole_test.h"

namespace trireme::whole {
namespace {

class OutputTest : public WholeTest {
 protected:
  // The program in a shell that sets the scene: `"$@"` stands for it.
  Outcome RunIn(const std::string& scene, const Words& words) {
    return Run(words, kTimeout, {"sh", "-c", scene, "sh"});
  }
  void ExpectIn(const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << text;
  }
  size_t Entries(const std::string& folder) const {
    return size_t(std::distance(std::filesystem::directory_iterator(At(folder)), {}));
  }
};

const Words kTrain = {"train", "--epochs", "2", "--quiet", "--out"};

TEST_F(OutputTest, APageGoesWhereItsNameLeads) {
  Succeed(kTrain + Words{"a"});
  const std::string page = Succeed({"report", "a", "--out", "-"}).out;
  EXPECT_TRUE(page.starts_with("<!doctype html>") || page.starts_with("<!DOCTYPE html>"))
      << page.substr(0, 100);
  EXPECT_EQ(Succeed({"report", "a", "--out", "/dev/stdout"}).out, page);
  EXPECT_FALSE(Exists(At("-")));

  Write("far/page.html", "old");
  std::filesystem::create_symlink("far/page.html", At("latest.html"));
  Succeed({"report", "a", "--out", "latest.html"});
  EXPECT_TRUE(std::filesystem::is_symlink(At("latest.html")));
  EXPECT_EQ(Read("far/page.html"), page);
  EXPECT_EQ(Entries("far"), 1u);

  Refuse({"report", "a", "--out", "/dev/full"}, 1, {"/dev/full", "No space left on device"});
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  ASSERT_EQ(mkfifo(At("pipe").c_str(), 0600), 0);
  RunIn("cat pipe > heard & \"$@\"; wait", {"report", "a", "--out", "pipe"});
  EXPECT_EQ(Read("heard"), page);
  EXPECT_TRUE(std::filesystem::is_fifo(At("pipe")));

  const Words slurm = {"launch", "slurm", "--out", "-", "--", "train", "--out", "b"};
  ExpectIn(Succeed(slurm).out, "#SBATCH");
  Refuse({"data", "pack", "far", "-"}, 2, {"a pack cannot be written to the standard output"});
}

TEST_F(OutputTest, WhatCannotBeWrittenIsNoSuccess) {
  const std::string full = "exec \"$@\" > /dev/full";
  for (const char* transport : {"threads", "shm"}) {
    const Outcome outcome = RunIn(full, {"train", "--epochs", "2", "--json", "--ranks", "2",
                                         "--transport", transport, "--out", transport});
    EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
    ExpectIn(outcome.err, "cannot write the output: No space left on device");
    EXPECT_TRUE(IsDone(transport));  // the run is worth more
  }
  for (const Words& words : {Words{"eval", "shm", "--json"},
                             {"list", "models"},
                             {"doctor", "--json"},
                             {"--help"},
                             {"report", "shm", "--out", "-"},
                             {"train", "--dry-run"},
                             {"watch", "shm"}}) {
    const Outcome outcome = RunIn(full, words);
    EXPECT_EQ(outcome.exit_code, 1) << words[0] << outcome.err;
  }
  EXPECT_EQ(RunIn("\"$@\" | head -c 1", {"train", "--json", "--out", "gone"}).exit_code, 0);
}

TEST_F(OutputTest, ALimitOnTheSizeOfFilesIsNamed) {
  const Words large = {"train",   "--data",       "synthetic:8x8x1:5:100",
                       "--model", "mlp:64-900-5", "--epochs",
                       "1",       "--threads",    "1",
                       "--quiet", "--out",        "a"};
  const Outcome outcome = RunIn("ulimit -f 100; exec \"$@\"", large);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.signal << outcome.err;
  ExpectIn(outcome.err, "File too large");
}

TEST_F(OutputTest, ATraceThatCannotBeWrittenIsRefusedBeforeTraining) {
  Write("folder/file", "");
  Refuse(kTrain + Words{"a", "--trace", "folder"}, 1, {"folder: is a folder; expected a file"});
  Refuse(kTrain + Words{"a", "--trace", "nowhere/t.json"}, 1, {"nowhere", "No such file"});
  EXPECT_FALSE(Exists(At("a")) || Exists(At("folder.rank0")));
  const Outcome full = Run(kTrain + Words{"b", "--trace", "/dev/full"});
  EXPECT_EQ(full.exit_code, 1);
  ExpectIn(full.err, "/dev/full: cannot write: No space left on device");
  EXPECT_TRUE(IsDone("b"));
  EXPECT_FALSE(Exists("/dev/full.rank0"));
}

}  // namespace
}  // namespace trireme::whole
