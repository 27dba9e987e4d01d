// The way `fabric` to a memory box between hosts: network namespaces, joined by virtual cables.
#include "transport/fabric/end.h"
#include "transport/tcp/testing_hosts.h"

namespace trireme {
namespace {

class Plugin : public testing::Environment {
  void SetUp() override { setenv("TRIREME_FABRIC_PLUGIN", TRIREME_FABRIC_PLUGIN_FILE, 1); }
};
const auto* const kPlugin = testing::AddGlobalTestEnvironment(new Plugin);

class FabricHosts : public Hosts {};
TEST_P(FabricHosts, Conform) {
  CheckCase(GetParam(), [&](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    RunWithBox(ranks, timeout_s, {.provider = "tcp;ofi_rxm", .open = OpenFabricEnd},
               {.long_values = LongValues::kBulk, .open_bulk = OpenFabricEnd}, [&](World& world) {
                 const std::string way = world.memory()->way();
                 EXPECT_TRUE(way.starts_with("fabric (tcp;ofi_rxm) to 10.77.0.1:")) << way;
                 fn(world);
               });
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, FabricHosts, testing::ValuesIn(MemoryCases()), CaseName);

}  // namespace
}  // namespace trireme
