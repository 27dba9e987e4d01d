#include "launch/shm_run.h"

#include "transport/check/conformance.h"

namespace trireme {
namespace {

class Shm : public testing::TestWithParam<ConformanceCase> {};
TEST_P(Shm, Conforms) {
  CheckCase(GetParam(), [](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    RunShm({.ranks = ranks, .timeout_s = timeout_s}, [&](World& world) {
      fn(world);
      return 0;
    });
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, Shm, testing::ValuesIn(AllCases()), CaseName);

}  // namespace
}  // namespace trireme
