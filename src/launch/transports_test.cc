// What every transport must do, tried on the ranks that the program starts itself.
#include "launch/transports.h"

#include "launch/launcher.h"
#include "transport/check/conformance.h"

namespace trireme {
namespace {

struct Try {
  const TransportKind* kind;
  ConformanceCase conformance_case;
};

std::vector<Try> Tries() {
  std::vector<Try> tries;
  for (const TransportKind& kind : TransportKinds()) {
    if (!kind.run) continue;  // a launcher's: its folder has a test that starts one
    for (const ConformanceCase& c : AllCases()) tries.push_back({&kind, c});
  }
  return tries;
}

std::string TryName(const testing::TestParamInfo<Try>& info) {
  return std::string(info.param.kind->name) + "_" + info.param.conformance_case.name;
}

class Transports : public testing::TestWithParam<Try> {};
TEST_P(Transports, Conform) {
  const auto start = [&](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    TransportOptions options{.name = GetParam().kind->name, .ranks = ranks, .timeout_s = timeout_s};
    constexpr size_t kShared = size_t{64} << 20;
    Launcher(options, true, {}).Run({.shared_bytes = kShared}, [&](World& world) {
      fn(world);
      return 0;
    });
  };
  CheckCase(GetParam().conformance_case, start);
}
INSTANTIATE_TEST_SUITE_P(All, Transports, testing::ValuesIn(Tries()), TryName);

TEST(TransportKinds, AreFoundByName) {
  for (const TransportKind& kind : TransportKinds()) EXPECT_EQ(FindTransport(kind.name), &kind);
  EXPECT_EQ(FindTransport(kAutoTransport), nullptr);
}

TEST(TransportKinds, EveryRowCanBeBegun) {
  for (const TransportKind& kind : TransportKinds()) {
    EXPECT_TRUE(kind.run || kind.join) << kind.name;
    EXPECT_TRUE(!kind.one_process || kind.shares_memory) << kind.name;
    EXPECT_TRUE(!kind.meets || kind.join) << kind.name << ": ranks that meet can be joined";
  }
}

}  // namespace
}  // namespace trireme
