#include <algorithm>

#include "transport/mpi/testing.h"

namespace trireme {
namespace {

std::vector<ConformanceCase> Cases(std::initializer_list<std::string_view> names) {
  std::vector<ConformanceCase> some;
  for (const ConformanceCase& one : AllCases()) {
    if (std::find(names.begin(), names.end(), one.name) != names.end()) some.push_back(one);
  }
  return some;
}

class Mpi : public testing::TestWithParam<ConformanceCase> {};
TEST_P(Mpi, Conforms) {
  CheckCase(GetParam(), [](int ranks, double, FunctionRef<void(World&)>) {
    RunCase(Mpirun(), GetParam().name, ranks);
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, Mpi, testing::ValuesIn(AllCases()), CaseName);

// As messages of more than 1 GiB do. 4,000 divides the lengths of some messages, but not of others.
class MpiInPieces : public testing::TestWithParam<ConformanceCase> {};
TEST_P(MpiInPieces, Conforms) {
  CheckCase(GetParam(), [](int ranks, double, FunctionRef<void(World&)>) {
    RunCase(Mpirun(), GetParam().name, ranks, 4000);
  });
}
INSTANTIATE_TEST_SUITE_P(
    Cases, MpiInPieces,
    testing::ValuesIn(Cases({"KeepsTheOrderOfEachTag", "CarriesLargeMessagesBothWaysAtOnce",
                             "ManySendToOne", "ADroppedTicketWaitsForItsBytes",
                             "MessagesArriveOnceAndInOrder", "LargeMessagesGoBothWays"})),
    CaseName);

class MpiBetweenHosts : public testing::TestWithParam<ConformanceCase> {};
TEST_P(MpiBetweenHosts, Conforms) {
  const std::string command = Mpirun(TRIREME_MPI_FOLDER "/mpirun-two-hosts");
  const Ended ready = RunCommand(command + " -n 2 true");
  if (ready.code == 77) GTEST_SKIP() << "no network namespaces here: " << ready.output;
  CheckCase(GetParam(), [&](int ranks, double, FunctionRef<void(World&)>) {
    RunCase(command, GetParam().name, ranks);
  });
}
INSTANTIATE_TEST_SUITE_P(
    Cases, MpiBetweenHosts,
    testing::ValuesIn(Cases({"CarriesLargeMessagesBothWaysAtOnce", "RefusesAnotherLengthThanSent",
                             "ARankThatThrowsEndsAll", "PartsOfAGroupDoNotMixTheirMessages",
                             "CollectivesWorkFor4", "LargeMessagesGoBothWays",
                             "OffersNeverBuildAQueue", "LinksEndWithTheJob"})),
    CaseName);

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) { return trireme::RunMpiTest(argc, argv, trireme::AllCases()); }
