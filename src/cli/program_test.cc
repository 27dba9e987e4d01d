#include "cli/program.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <system_error>

#include "base/files.h"
#include "base/signals.h"
#include "cli/commands.h"
#include "engine/engines.h"

namespace trireme {
namespace {

struct Outcome {
  int code;
  std::string out;
  std::string err;
};

std::string Contents(FILE* file) {
  std::string text;
  char buffer[4096];
  std::rewind(file);
  for (size_t n; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, n);
  std::fclose(file);
  return text;
}

Outcome Call(std::span<const Command* const> commands, const std::vector<std::string>& words) {
  FILE* out_file = std::tmpfile();
  FILE* err_file = std::tmpfile();
  Output out(fileno(out_file));
  LogOutput log(fileno(err_file));
  Process process{out, log};
  const int code = RunProgram(commands, words, process);
  return {code, Contents(out_file), Contents(err_file)};
}

constexpr Flag kFlags[] = {{"--how", "HOW", "how it ends"}, {"--loud", "", "say it"}};
constexpr Place kPlaces[] = {{"FILE", Place::kOptional, "unused"}};

int End(const Args& args, Process& process) {
  const std::string how = args.Value("--how").value_or("well");
  if (args.Has("--loud")) process.out.Print("it ends {}\n", how);
  if (how == "usage") throw UsageError("trainer.batch must be at least 1, got 0");
  if (how == "error") throw PeerLost("rank 1 is gone");
  if (how == "list") throw Error("two nodes are odd:\n  a, which says\nerror: no\n  b");
  if (how == "memory") throw std::bad_alloc();
  if (how == "standard") throw std::out_of_range("vector");
  if (how == "thread") throw std::system_error(EAGAIN, std::generic_category());
  if (how == "odd") throw 7;
  return how == "stopped" ? 130 : 0;
}

constexpr Command kEnd = {.name = "end",
                          .summary = "end somehow",
                          .usage = "trireme end [FILE] [--how HOW]",
                          .examples = "trireme end --how well  # it does",
                          .flags = kFlags,
                          .places = kPlaces,
                          .run = End};
constexpr Command kBenchEnd = {.name = "bench end",
                               .summary = "time the end",
                               .usage = "trireme bench end",
                               .examples = "trireme bench end",
                               .run = End};
constexpr const Command* kCommands[] = {&kEnd, &kBenchEnd};

TEST(Program, AListHasItsLines) {
  EXPECT_EQ(Call(kCommands, {"end", "--how", "list"}).err,
            "trireme: error: two nodes are odd:\n  a, which says error: no\n  b\n");
}

TEST(Program, ExitCodesSayHowItEnded) {
  EXPECT_EQ(Call(kCommands, {"end", "--loud"}).code, 0);
  EXPECT_EQ(Call(kCommands, {"end", "--loud"}).out, "it ends well\n");
  EXPECT_EQ(Call(kCommands, {"end", "--how", "stopped"}).code, 130);
  const Outcome usage = Call(kCommands, {"end", "--how", "usage"});
  EXPECT_EQ(usage.code, 2);
  EXPECT_EQ(usage.err,
            "trireme: error: trainer.batch must be at least 1, got 0\n"
            "trireme: try: trireme end --help\n");
  const Outcome failed = Call(kCommands, {"end", "--how=error"});
  EXPECT_EQ(failed.code, 1);
  EXPECT_EQ(failed.err, "trireme: error: rank 1 is gone\n");
  EXPECT_EQ(Call(kCommands, {"end", "--how", "memory"}).code, 1);
  EXPECT_EQ(Call(kCommands, {"end", "--how", "thread"}).err,
            "trireme: error: cannot start a thread: Resource temporarily unavailable (check "
            "ulimit -u, ulimit -v and the cgroup's pids.max)\n");
  EXPECT_EQ(Call(kCommands, {"end", "--how", "standard"}).err,
            "trireme: error: unexpected: vector\n");
  EXPECT_EQ(Call(kCommands, {"end", "--how", "odd"}).code, 1);
}

TEST(Program, SuggestsCommandsAndFlags) {
  const Outcome command = Call(kCommands, {"edn"});
  EXPECT_EQ(command.code, 2);
  EXPECT_EQ(command.err,
            "trireme: error: unknown command \"edn\"; did you mean end?\n"
            "trireme: try: trireme --help\n");
  const Outcome flag = Call(kCommands, {"end", "--hwo", "well"});
  EXPECT_EQ(flag.code, 2);
  EXPECT_EQ(flag.err,
            "trireme: error: unknown flag --hwo; did you mean --how?\n"
            "trireme: try: trireme end --help\n");
  EXPECT_EQ(Call(kCommands, {"bench"}).err,
            "trireme: error: bench needs a second word: bench end\ntrireme: try: trireme --help\n");
  EXPECT_EQ(Call(kCommands, {"bench", "start"}).err,
            "trireme: error: unknown command \"bench start\"; there is bench end\n"
            "trireme: try: trireme --help\n");
  EXPECT_EQ(Call(kCommands, {"--json"}).err,
            "trireme: error: unknown flag --json\ntrireme: try: trireme --help\n");
  EXPECT_EQ(Call(kCommands, {"--how=well", "end"}).err,
            "trireme: error: put flags after the command, as in: trireme end --how=well\n"
            "trireme: try: trireme --help\n");
  EXPECT_EQ(Call(kCommands, {""}).code, 2);
}

TEST(Program, HelpsInEveryForm) {
  const std::string overview = Call(kCommands, {"--help"}).out;
  EXPECT_NE(overview.find("  end        end somehow\n  bench end  time the end\n"),
            std::string::npos)
      << overview;
  EXPECT_EQ(Call(kCommands, {}).out, overview);
  EXPECT_EQ(Call(kCommands, {"help"}).out, overview);
  EXPECT_EQ(Call(kCommands, {"-h"}).out, overview);
  const std::string end = Call(kCommands, {"help", "end"}).out;
  EXPECT_EQ(end,
            "trireme end: end somehow\n\nusage: trireme end [FILE] [--how HOW]\n\n"
            "  FILE  unused\n\nflags:\n  --how HOW  how it ends\n  --loud     say it\n"
            "  --help     print this\n\nexamples:\n  trireme end --how well  # it does\n");
  EXPECT_EQ(Call(kCommands, {"end", "--help"}).out, end);
  EXPECT_EQ(Call(kCommands, {"end", "--nonsense", "-h"}).out, end);
  EXPECT_NE(Call(kCommands, {"bench", "end", "--help"}).out.find("time the end"),
            std::string::npos);
  const std::string family = Call(kCommands, {"bench", "--help"}).out;
  EXPECT_NE(family.find("\n  bench end  time the end\n"), std::string::npos) << family;
  EXPECT_EQ(family.find("end somehow"), std::string::npos) << family;
  EXPECT_EQ(Call(kCommands, {"help", "bench"}).out, family);
  EXPECT_EQ(Call(kCommands, {"help", "edn"}).code, 2);
  EXPECT_TRUE(Call(kCommands, {"--version"}).out.starts_with("trireme "));
}

TEST(Program, EveryCommandHelpsAndHasAnExample) {
  for (const Command* command : AllCommands()) {
    const Outcome help = Call(AllCommands(), {"help", std::string(command->name)});
    EXPECT_EQ(help.code, 0);
    EXPECT_TRUE(command->usage.starts_with("trireme " + std::string(command->name)));
    EXPECT_TRUE(command->examples.starts_with("trireme " + std::string(command->name)));
    for (const Flag& flag : command->flags) {
      EXPECT_TRUE(flag.name.starts_with("--")) << flag.name;
      EXPECT_FALSE(flag.help.empty()) << flag.name;
    }
  }
}

TEST(Program, AGoneReaderIsNoFailure) {
  const Signals signals;  // a closed pipe is no death
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  close(ends[0]);
  Output out(ends[1]);
  LogOutput log(ends[1]);
  Process process{out, log};
  const std::vector<std::string> words = {"--help"};
  EXPECT_EQ(RunProgram(kCommands, words, process), 0);
  close(ends[1]);
}

TEST(Program, AFullDiskIsAFailure) {
  FILE* full = std::fopen("/dev/full", "w");
  if (full == nullptr) GTEST_SKIP() << "no /dev/full here";
  Output out(fileno(full));
  LogOutput log(-1);
  Process process{out, log};
  const std::vector<std::string> words = {"--help"};
  EXPECT_EQ(RunProgram(kCommands, words, process), 1);
  std::fclose(full);
}

TEST(Doctor, PrintsTheSameForPeopleAndScripts) {
  const Outcome text = Call(AllCommands(), {"doctor"});
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("used by engine cuda through its plugin"), std::string::npos);
  const Outcome json = Call(AllCommands(), {"doctor", "--json"});
  const auto parsed = nlohmann::json::parse(json.out);
  EXPECT_GE(parsed["cores"], 1);
  EXPECT_GE(parsed["simd"].size(), 1u);
  EXPECT_GT(parsed["memory"]["bytes"], 0);
  EXPECT_NE(text.out.find(parsed["cores_why"].get<std::string>()), std::string::npos);
  EXPECT_NE(text.out.find(parsed["simd"][0].get<std::string>()), std::string::npos);
  EXPECT_TRUE(parsed["parts"].contains("MPI"));
  EXPECT_TRUE(parsed.contains("launcher") && parsed.contains("mpi_plugin"));
}

TEST(Doctor, NamesTheLauncherAndWhatIsWrongWithIt) {
  setenv("TRIREME_RANK", "1", 1);
  setenv("TRIREME_WORLD", "4", 1);
  setenv("TRIREME_MPI_PLUGIN", "/nowhere/trireme-mpi.so", 1);
  const Outcome good = Call(AllCommands(), {"doctor"});
  setenv("TRIREME_WORLD", "1", 1);
  const Outcome bad = Call(AllCommands(), {"doctor", "--json"});
  for (const char* name : {"TRIREME_RANK", "TRIREME_WORLD", "TRIREME_MPI_PLUGIN"}) unsetenv(name);
  EXPECT_NE(good.out.find("trireme: rank 1 of 4"), std::string::npos) << good.out;
  EXPECT_NE(good.out.find("cannot load the MPI plugin /nowhere/trireme-mpi.so"), std::string::npos);
  EXPECT_EQ(nlohmann::json::parse(bad.out)["launcher"]["problem"],
            "TRIREME_RANK must be below TRIREME_WORLD, got 1 of 1");
}

TEST(Doctor, WritesTheMpiPlugin) {
  TemporaryDirectory folder;
  const Outcome written = Call(AllCommands(), {"doctor", "--write-mpi-plugin", folder / "new/one"});
  EXPECT_EQ(written.code, 0);
  EXPECT_NE(written.out.find("mpicc -shared -fPIC"), std::string::npos);
  EXPECT_NE(ReadFile(folder / "new/one/plugin.c").find("MPI_Init_thread"), std::string::npos);
  EXPECT_NE(ReadFile(folder / "new/one/plugin.h").find("TriremeMpiTable"), std::string::npos);
}

// Each benchmark says what it measured, how long it took and how close to the ceiling that is.
TEST(Bench, ListsNamesForScripts) {
  const std::vector<std::vector<std::string>> tries = {
      {"bench", "peak", "--repeat", "1", "--threads", "1"},
      {"bench", "gemm", "--sizes", "30x20x10", "--repeat", "1"},
      {"bench", "conv", "mlp:4-30-20-3", "--batch", "4", "--repeat", "1", "--all"},
      {"bench", "step", "mlp:4-30-20-3", "--batch", "4", "--repeat", "1", "--threads", "2"},
  };
  for (std::vector<std::string> words : tries) {
    const Outcome text = Call(AllCommands(), words);
    words.push_back("--json");
    const Outcome json = Call(AllCommands(), words);
    ASSERT_EQ(json.code, 0) << json.err;
    const auto rows = nlohmann::json::parse(json.out);
    ASSERT_GE(rows.size(), 1u);
    for (const auto& row : rows) {
      EXPECT_EQ(row["what"], words[1]);
      EXPECT_GE(row["threads"], 1);
      EXPECT_GE(row["gflops"], 0);
      if (words[1] != "peak") {
        EXPECT_EQ(row["precision"], "f32");
        EXPECT_GT(row["ms"], 0);
        EXPECT_GE(row["share_of_peak"], 0);  // how much is the machine's affair
      }
    }
    EXPECT_NE(text.out.find("gflops"), std::string::npos) << text.out;
  }
}

TEST(Bench, RefusesWhatItCannotMeasure) {
  EXPECT_EQ(Call(AllCommands(), {"bench", "gemm", "--sizes", "30x20"}).code, 2);
  EXPECT_EQ(Call(AllCommands(), {"bench", "gemm", "--sizes", "0x2x3"}).code, 2);
  EXPECT_EQ(Call(AllCommands(), {"bench", "step", "resnet99"}).code, 2);
  EXPECT_EQ(Call(AllCommands(), {"bench", "step", "cnn", "--batch", "0"}).code, 2);
  EXPECT_EQ(Call(AllCommands(), {"bench", "step", "cnn", "--precision", "f16"}).code, 2);
  EXPECT_EQ(Call(AllCommands(), {"bench", "step", "resnet18", "--set", "model.stem=9x9"}).code, 2);
  const Outcome ref = Call(AllCommands(), {"bench", "conv", "cnn", "--device", "ref"});
  EXPECT_EQ(ref.code, 2);
  EXPECT_NE(ref.err.find("the engine ref has no ceiling"), std::string::npos) << ref.err;
}

TEST(Bench, MeasuresBFloatWhereTheMachineHasIt) {
  const Outcome step = Call(AllCommands(), {"bench", "step", "mlp:40-50-10", "--batch", "16",
                                            "--repeat", "1", "--precision", "bf16", "--json"});
  const std::string why_not = HostEngine().why_not(Precision::kBf16);
  if (why_not.empty()) {
    ASSERT_EQ(step.code, 0) << step.err;
    EXPECT_EQ(nlohmann::json::parse(step.out)[0]["precision"], "bf16");
  } else {
    EXPECT_EQ(step.code, 2);
    EXPECT_NE(step.err.find(why_not), std::string::npos) << step.err;
  }
}

}  // namespace
}  // namespace trireme
