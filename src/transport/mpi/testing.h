#pragma once
// Tests under mpirun: the test starts its own program once per rank, with `--case NAME`.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "base/files.h"
#include "base/text.h"
#include "transport/check/conformance.h"
#include "transport/mpi/world.h"

namespace trireme {

using Prepare = void (*)(World&);

// In a rank: joins, runs the case, and ends as the program would.
inline int RunAsRank(const ConformanceCase& wanted, size_t piece_bytes, Prepare prepare) {
  try {
    // By hand with another MPI: TRIREME_MPI_PLUGIN=... mpirun -n 2 TEST --case NAME 0
    const bool by_hand = std::getenv("TRIREME_MPI_PLUGIN") != nullptr;
    MpiSetup setup{.plugin = by_hand ? "" : TRIREME_MPI_PLUGIN_FILE,
                   .timeout_s = wanted.timeout_s,
                   .launched = FindLauncher([](const char* name) { return std::getenv(name); })};
    if (piece_bytes > 0) setup.piece_bytes = piece_bytes;
    const auto world = JoinMpi(setup);
    try {
      if (world->size() != wanted.ranks) throw Error("a world of {}", world->size());
      if (prepare) prepare(*world);
      wanted.run(*world);
      if (testing::Test::HasFailure()) throw Error("rank {} found a fault", world->rank());
    } catch (Error& error) {
      world->group().Abort(error.what());
      error.Add("rank {} of {}", world->rank(), world->size());
      throw;
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}

struct Ended {
  int code = 0;
  std::string output;  // both streams
};

inline Ended RunCommand(const std::string& command) {
  Ended ended;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return {127, "popen failed"};
  char buffer[4096];
  while (const size_t got = std::fread(buffer, 1, sizeof(buffer), pipe)) {
    ended.output.append(buffer, got);
  }
  const int status = pclose(pipe);
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return ended;
}

// What stands before `-n RANKS SELF --case NAME`. A hang is a failure.
inline std::string Mpirun(const std::string& program = TRIREME_MPIRUN) {
  return "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MPIRUN=" TRIREME_MPIRUN
         " ASAN_OPTIONS=detect_leaks=0 "  // of the MPI library's own
         "timeout -k 2 240 " +
         program + " --oversubscribe --bind-to none";
}

inline std::string Self() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

// For CheckCase: an Error with all that was printed when the job fails.
inline void RunCase(const std::string& mpirun, const char* name, int ranks,
                    size_t piece_bytes = 0) {
  const Ended ended =
      RunCommand(fmt::format("{} -n {} {} --case {} {}", mpirun, ranks, Self(), name, piece_bytes));
  if (ended.code != 0) throw Error("exit code {}: {}", ended.code, ended.output);
}

// main of such a test. `prepare`: on every rank, before its case.
inline int RunMpiTest(int argc, char** argv, std::span<const ConformanceCase> cases,
                      Prepare prepare = nullptr) {
  if (argc == 4 && std::string_view(argv[1]) == "--case") {
    for (const ConformanceCase& wanted : cases) {
      if (std::string_view(argv[2]) == wanted.name) {
        return RunAsRank(wanted, ParseNumber<size_t>(argv[3]).value_or(0), prepare);
      }
    }
    std::fprintf(stderr, "no case %s\n", argv[2]);
    return 2;
  }
  testing::InitGoogleTest(&argc, argv);
  // Open MPI has one folder for all jobs of a user: another test's job may just take it away.
  const TemporaryDirectory own;
  setenv("TMPDIR", own.path().c_str(), /*overwrite=*/1);
  return RUN_ALL_TESTS();
}

}  // namespace trireme
