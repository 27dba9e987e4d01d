#include "cli/slurm_script.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <random>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trireme {
namespace {

SlurmJob SomeJob() {
  SlurmJob job;
  job.name = "a";
  job.nodes = 2;
  job.ranks_per_node = 4;
  job.program = "/opt/trireme";
  job.run = "runs/a";
  job.first_words = {"train", "iris", "--out", "runs/a"};
  job.resume_words = {"train", "--resume", "runs/a"};
  return job;
}

std::string OutputOf(const std::string& command) {
  FILE* pipe = popen(command.c_str(), "r");
  std::string text;
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += char(c);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

bool Holds(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

TEST(QuoteShell, PlainWordsStayAsTheyAre) {
  EXPECT_EQ(QuoteShell("runs/a-1_b.c"), "runs/a-1_b.c");
  EXPECT_EQ(QuoteShell("--set=a.b=1e-3,x@y:z%+"), "--set=a.b=1e-3,x@y:z%+");
  EXPECT_EQ(QuoteShell(""), "''");
  EXPECT_EQ(QuoteShell("it's"), "'it'\\''s'");
  EXPECT_EQ(QuoteShell(std::vector<std::string>{"a b", "$HOME", "c"}), "'a b' '$HOME' c");
}

// The shell itself is the judge.
TEST(QuoteShell, TheShellReadsBackWhatWasMeant) {
  std::vector<std::string> words = {"a b",
                                    "$(id)",
                                    "`id`",
                                    "\"",
                                    "'",
                                    "\\",
                                    "a'b'c",
                                    "*",
                                    "#x",
                                    "~",
                                    "-n",
                                    "a;b",
                                    "a&",
                                    "{1,2}",
                                    "!!",
                                    "\xff",
                                    "\n#SBATCH --nodes=9\n",
                                    "caf\xc3\xa9",
                                    "x\ty"};
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    std::string word;
    for (size_t n = random() % 12; n > 0; --n) word += char(1 + random() % 127);
    words.push_back(word);
  }
  const TemporaryDirectory folder;
  std::string expected, script = "printf '%s\\0' " + QuoteShell(words) + "\n";
  for (const std::string& word : words) expected += word + '\0';
  ReplaceFile(folder / "script", script);
  EXPECT_EQ(OutputOf("bash " + folder / "script"), expected);
  EXPECT_EQ(OutputOf("sh " + folder / "script"), expected);
}

TEST(SlurmScript, IsASyntacticallyRightScript) {
  const TemporaryDirectory folder;
  SlurmJob job = SomeJob();
  job.run = "runs/it's";
  job.modules = {"gcc/12", "openmpi"};
  for (const bool mpi : {false, true}) {
    job.mpi = mpi;
    ReplaceFile(folder / "script", SlurmScript(job));
    EXPECT_EQ(OutputOf("bash -n " + folder / "script 2>&1"), "");
  }
}

TEST(SlurmScript, SaysWhatWasAskedFor) {
  SlurmJob job = SomeJob();
  job.cpus_per_rank = 6;
  job.partition = "gpu";
  job.account = "p1";
  job.time = "1-12:00:00";
  job.gres = "gpu:a100:4";
  job.options = {"--qos=high"};
  const std::string script = SlurmScript(job);
  for (const char* line :
       {"#SBATCH --nodes=2\n", "#SBATCH --ntasks=8\n", "#SBATCH --ntasks-per-node=4\n",
        "#SBATCH --cpus-per-task=6\n", "#SBATCH --partition=gpu\n", "#SBATCH --account=p1\n",
        "#SBATCH --time=1-12:00:00\n", "#SBATCH --gres=gpu:a100:4\n", "#SBATCH --qos=high\n",
        "#SBATCH --signal=B:USR1@120\n", "#SBATCH --requeue\n", "--kill-on-bad-exit=1",
        "--mpi=none", " --cpus-per-task=6 ", "export TRIREME_MEET TRIREME_SECRET\n"}) {
    EXPECT_TRUE(Holds(script, line)) << line << script;
  }
  // sbatch reads no further than the first line that is no comment.
  EXPECT_LT(script.rfind("#SBATCH"), script.find("\n\n"));
  EXPECT_FALSE(Holds(script, "module load"));
}

TEST(SlurmScript, WithMpiNoSecretIsNeeded) {
  SlurmJob job = SomeJob();
  job.mpi = true;
  job.mpi_kind = "pmi2";
  EXPECT_TRUE(Holds(SlurmScript(job), "--mpi=pmi2"));
  EXPECT_FALSE(Holds(SlurmScript(job), "TRIREME_SECRET"));
}

TEST(SlurmScript, ContainersStandBetweenSrunAndTheProgram) {
  SlurmJob job = SomeJob();
  job.container = "my image.sif";
  job.container_with = "apptainer";
  job.program = "trireme";
  EXPECT_TRUE(Holds(SlurmScript(job), " apptainer exec 'my image.sif' trireme \"${words[@]}\" &"));
  job.container_with = "pyxis";
  EXPECT_TRUE(Holds(SlurmScript(job), " '--container-image=my image.sif' trireme "));
}

TEST(SlurmScript, RefusesNonsense) {
  const auto refused = [](auto change) {
    SlurmJob job = SomeJob();
    change(job);
    try {
      SlurmScript(job);
    } catch (const UsageError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  using J = SlurmJob;
  EXPECT_TRUE(
      Holds(refused([](J& j) { j.nodes = 0; }), "--nodes must be between 1 and 1024, got 0"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.ranks_per_node = -1; }), "--ranks-per-node"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.nodes = j.ranks_per_node = 1024; }), "got 1048576"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.cpus_per_rank = -2; }), "--cpus-per-rank"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.grace_s = 65536; }), "--grace"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.name = "a\n#SBATCH --nodes=9"; }), "--name"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.name = "a/b"; }), "--name"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.partition = "a b"; }), "--partition"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.account = "a\nb"; }), "--account"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.gres = "gpu;rm"; }), "--gres"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.time = "soon"; }), "--time"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.options = {"qos=high"}; }), "--sbatch"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.options = {"--qos=a\nrm"}; }), "--sbatch"));
  EXPECT_TRUE(Holds(refused([](J& j) { j.modules = {""}; }), "--module"));
}

}  // namespace
}  // namespace trireme
