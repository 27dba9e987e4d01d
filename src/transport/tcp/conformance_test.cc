#include "transport/check/conformance.h"

#include "transport/tcp/testing.h"

namespace trireme {
namespace {

class Tcp : public testing::TestWithParam<ConformanceCase> {};
TEST_P(Tcp, Conforms) {
  CheckCase(GetParam(), [](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    RunTcpRanks(ranks, timeout_s, fn);
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, Tcp, testing::ValuesIn(AllCases()), CaseName);

}  // namespace
}  // namespace trireme
