#include "transport/mpi/testing.h"

namespace trireme {
namespace {

class Mpi : public testing::TestWithParam<ConformanceCase> {};
TEST_P(Mpi, Conforms) {
  CheckCase(GetParam(), [](int ranks, double, FunctionRef<void(World&)>) {
    RunCase(Mpirun(), GetParam().name, ranks);
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, Mpi, testing::ValuesIn(GroupCases()), CaseName);

}  // namespace
}  // namespace trireme

int main(int argc, char** argv) { return trireme::RunMpiTest(argc, argv, trireme::GroupCases()); }
