#include "cli/candidates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/files.h"
#include "base/text.h"
#include "cli/commands.h"

namespace trireme {
namespace {

// Of a line as it is typed; one that ends with a space begins a new word.
Candidates Of(const std::string& line) {
  const std::vector<std::string> words = Split(line, ' ');
  return FindCandidates(AllCommands(), words);
}

bool Offers(const std::string& line, const std::string& word) {
  const Candidates found = Of(line);
  return std::ranges::any_of(found.words, [&](const Candidate& c) { return c.word == word; });
}

TEST(Candidates, CommandsAndTheirSecondWords) {
  EXPECT_TRUE(Offers("", "train"));
  EXPECT_TRUE(Offers("", "--version"));
  EXPECT_TRUE(Offers("b", "bench"));
  EXPECT_FALSE(Offers("b", "train"));
  EXPECT_TRUE(Offers("bench ", "gemm"));
  EXPECT_TRUE(Offers("help bench g", "gemm"));
  EXPECT_EQ(Of("bench ge").words.size(), 1u);
  EXPECT_TRUE(Of("nonsense ").words.empty());
}

TEST(Candidates, FlagsAndTheirValues) {
  EXPECT_TRUE(Offers("train --str", "--strategy"));
  EXPECT_TRUE(Offers("train --strategy ", "easgd"));
  EXPECT_TRUE(Offers("train --strategy=ea", "--strategy=easgd"));
  EXPECT_TRUE(Offers("train --shuffle ", "false"));
  EXPECT_TRUE(Offers("train --model res", "resnet18"));
  EXPECT_TRUE(Offers("train --data ", "iris"));
  EXPECT_TRUE(Offers("train --data ", "csv:"));
  EXPECT_TRUE(Offers("train --device ", "cpu"));
  EXPECT_FALSE(Offers("train --device ", "cuda:K"));
  EXPECT_TRUE(Of("train --epochs ").words.empty());
  EXPECT_TRUE(Of("train --trace ").files);
}

TEST(Candidates, KeysAndTheirValues) {
  EXPECT_TRUE(Offers("train --set strategy.per", "strategy.period="));
  EXPECT_TRUE(Offers("train --set strategy.name=ea", "strategy.name=easgd"));
  EXPECT_TRUE(Offers("train --set=strategy.name=ea", "--set=strategy.name=easgd"));
  EXPECT_TRUE(Offers("sweep --vary strategy.name=easgd,allr", "strategy.name=easgd,allreduce"));
  EXPECT_TRUE(Offers("train --set trainer.deterministic=t", "trainer.deterministic=true"));
  EXPECT_TRUE(Of("train --set no.key=").words.empty());
}

TEST(Candidates, PlacesByWhatStandsThere) {
  EXPECT_TRUE(Offers("train ", "fashion-cnn"));
  EXPECT_TRUE(Of("train ").files);
  EXPECT_FALSE(Offers("train iris ", "fashion-cnn"));
  EXPECT_TRUE(Offers("train --epochs 3 fash", "fashion-mlp"));
  EXPECT_TRUE(Offers("list ", "strategies"));
  EXPECT_TRUE(Offers("bench step ", "resnet50"));
  EXPECT_TRUE(Offers("replay ", "iris-mpi"));
  EXPECT_TRUE(Offers("completion ", "fish"));
  EXPECT_TRUE(Offers("launch slurm --nodes 2 -- train --strategy ", "easgd"));
  EXPECT_TRUE(Offers("launch slurm -- ", "train"));
}

TEST(Candidates, RunsAndTheFilesOfASource) {
  const TemporaryDirectory folder;
  const std::string runs = folder.path() + "/some";
  MakeDirectories(runs + "/first");
  MakeDirectories(runs + "/none");
  ReplaceFile(runs + "/first/config.toml", "");
  ReplaceFile(runs + "/a.csv", "");
  EXPECT_TRUE(Offers("eval " + runs + "/", runs + "/first"));
  EXPECT_FALSE(Offers("eval " + runs + "/", runs + "/none"));
  EXPECT_TRUE(Offers("train --resume " + runs + "/f", runs + "/first"));
  EXPECT_TRUE(Offers("train --data csv:" + runs + "/", "csv:" + runs + "/a.csv"));
  EXPECT_TRUE(Offers("train --data csv:" + runs + "/", "csv:" + runs + "/first/"));
}

}  // namespace
}  // namespace trireme
