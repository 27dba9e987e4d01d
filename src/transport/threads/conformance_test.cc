#include "transport/check/conformance.h"

#include "transport/threads/run.h"

namespace trireme {
namespace {

class Threads : public testing::TestWithParam<ConformanceCase> {};
TEST_P(Threads, Conforms) {
  CheckCase(GetParam(), [](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    RunRanks(ranks, timeout_s, fn);
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, Threads, testing::ValuesIn(AllCases()), CaseName);

}  // namespace
}  // namespace trireme
