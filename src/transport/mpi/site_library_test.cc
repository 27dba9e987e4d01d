#include "transport/mpi/site_library.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "base/files.h"
#include "transport/mpi/built_in.h"
#include "transport/mpi/library.h"
#include "transport/mpi/testing.h"

namespace trireme {
namespace {

constexpr char kCase[] = "KeepsTheOrderOfEachTag";

bool Holds(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// What is named, and what the machine says, in this order.
TEST(SiteMpi, IsLookedForWhereClustersHaveIt) {
  TemporaryDirectory folder;
  for (const char* file : {"launcher/lib/libmpi.so.12", "path/lib/libmpi.so.40",
                           "intel/lib/release/libmpi.so.12", "home/lib64/libmpi_abi.so.1"}) {
    MakeDirectories(std::filesystem::path(folder / file).parent_path());
    ReplaceFile(folder / file, "");
  }
  MakeDirectories(folder / "path/bin");
  ReplaceFile(folder / "path/bin/mpirun", "");
  std::filesystem::permissions(folder / "path/bin/mpirun", std::filesystem::perms::owner_all);
  std::map<std::string, std::string> variables = {{"PATH", "/none:" + folder / "path/bin"},
                                                  {"I_MPI_ROOT", folder / "intel"},
                                                  {"MPI_HOME", folder / "home"}};
  const auto variable = [&](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second.c_str();
  };
  MpiPlaces places{
      .wanted = "",
      .variable = variable,
      .ancestors = {{.program = "/usr/bin/bash", .loaded = {}},
                    {.program = folder / "launcher/bin/hydra", .loaded = {"/opt/libmpi.so.12.1"}}}};
  std::vector<std::string> paths;
  for (const MpiCandidate& candidate : MpiCandidates(places)) paths.push_back(candidate.path);
  ASSERT_GE(paths.size(), 6u);
  EXPECT_EQ(paths[0], "/opt/libmpi.so.12.1");
  EXPECT_EQ(paths[1], folder / "launcher/lib/libmpi.so.12");
  EXPECT_EQ(paths[2], folder / "path/lib/libmpi.so.40");
  EXPECT_EQ(paths[paths.size() - 6], folder / "home/lib64/libmpi_abi.so.1");
  EXPECT_EQ(paths[paths.size() - 5], "libmpi.so.40");  // the loader's places come last
  variables["TRIREME_MPI_LIBRARY"] = "named.so";
  EXPECT_EQ(MpiCandidates(places).size(), 1u);
  EXPECT_EQ(MpiCandidates(places)[0].path, "named.so");
  places.wanted = "first.so";
  EXPECT_EQ(MpiCandidates(places)[0].path, "first.so");
}

std::string ErrorOfOpening(const MpiCandidate& candidate, std::string_view launcher = "") {
  try {
    OpenSiteMpi({candidate}, launcher);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SiteMpi, WhatIsNoMpiOrAnothersIsRefusedWithBothNames) {
  EXPECT_TRUE(
      Holds(ErrorOfOpening({"libm.so.6", "by hand", true}), "libm.so.6 (by hand) is no MPI"));
  EXPECT_TRUE(
      Holds(ErrorOfOpening({"/none.so", "by hand", true}), "/none.so (by hand) cannot be loaded"));
  EXPECT_TRUE(
      Holds(ErrorOfOpening({"/none.so", "by the loader"}), "no MPI library fits: /none.so"));
  EXPECT_TRUE(Holds(ErrorOfOpening({"none.so", "by the loader"}), "transport.mpi_library"));
  const std::string other = TRIREME_MPI_IS_OPEN_MPI ? "MPICH (PMI)" : "Open MPI";
  const std::string said = ErrorOfOpening({TRIREME_MPI_LIBRARY_FILE, "by hand", true}, other);
  EXPECT_TRUE(Holds(said, TRIREME_MPI_LIBRARY_FILE)) << said;
  EXPECT_TRUE(Holds(said, other)) << said;
  // Its name is enough where nobody named it.
  const std::string name = TRIREME_MPI_IS_OPEN_MPI ? "/none/libmpi.so.40" : "/none/libmpi.so.12";
  EXPECT_TRUE(Holds(ErrorOfOpening({name, "beside it"}, other), "is not an MPI that"));
}

// In a process of its own: an MPI stays where it is loaded.
int OpensOnlyOne() {
  const MpiLibrary library = OpenMpi({.library = TRIREME_MPI_LIBRARY_FILE});
  const std::string said = ErrorOfOpening({"libm.so.6", "by hand", true});
  const bool right = library.path().starts_with("built in") && Holds(library.Name(), "MPI") &&
                     !library.Starters().empty() && Holds(library.why(), "transport.mpi_library") &&
                     Holds(said, "libm.so.6 (by hand) is another MPI than") &&
                     Holds(said, TRIREME_MPI_LIBRARY_FILE);
  if (!right) std::fprintf(stderr, "%s; %s\n", library.why().c_str(), said.c_str());
  return right ? 0 : 1;
}
TEST(SiteMpi, IsServedByAPluginInsideTheProgramAndStaysTheOnlyOne) {
  EXPECT_EXIT(std::_Exit(OpensOnlyOne()), testing::ExitedWithCode(0), "");
}

// No plugin lies beside this test.
TEST(SiteMpi, IsFoundByRanksThatMpirunStarts) {
  RunCase("TRIREME_MPI_PLUGIN= " + Mpirun(), kCase, 2);
}

TEST(PluginFile, LiesInMemoryOrInAFileThatGoes) {
  std::string path;
  {
    PluginFile file("some bytes", "trireme-test");
    EXPECT_EQ(ReadFile(file.path()), "some bytes");
    ASSERT_TRUE(file.Move());
    path = file.path();
    EXPECT_EQ(ReadFile(path), "some bytes");
  }
  EXPECT_FALSE(Exists(path));
}

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) { return trireme::RunMpiTest(argc, argv, trireme::GroupCases()); }
