// The way `fabric` to a memory box, over libfabric's providers that need no hardware.
#include <csignal>
#include <numeric>
#include <set>

#include "transport/check/conformance.h"
#include "transport/check/with_memory.h"
#include "transport/fabric/end.h"
#include "transport/tcp/cutter.h"
#include "transport/tcp/memory_door.h"
#include "transport/tcp/memory_way.h"
#include "transport/tcp/testing.h"
#include "transport/threads/run.h"

namespace trireme {
namespace {

constexpr double kTimeout_s = 60;  // of a machine with much to do
const MemoryBoxSetup kSetup = {.bytes = size_t{64} << 20, .threads = 2, .timeout_s = kTimeout_s};
const std::string kTcp = "tcp;ofi_rxm", kShm = "shm";

class Plugin : public testing::Environment {
  void SetUp() override { setenv("TRIREME_FABRIC_PLUGIN", TRIREME_FABRIC_PLUGIN_FILE, 1); }
};
const auto* const kPlugin = testing::AddGlobalTestEnvironment(new Plugin);

TcpMemorySetup ToBox(const std::string& address, LongValues long_values = LongValues::kBulk) {
  return {.meet = address,
          .timeout_s = kTimeout_s,
          .long_values = long_values,
          .open_bulk = OpenFabricEnd};
}
MemoryDoorSetup Offering(const std::string& provider) {
  return {.bulk = {.provider = provider, .open = OpenFabricEnd}};
}

using Case = std::tuple<std::string, ConformanceCase>;
class FabricWay : public testing::TestWithParam<Case> {};
TEST_P(FabricWay, Conforms) {
  const auto& [provider, conformance_case] = GetParam();
  CheckCase(conformance_case, [&](int ranks, double timeout_s, FunctionRef<void(World&)> fn) {
    MemoryBox box(kSetup);
    MemoryDoorSetup setup = Offering(provider);
    setup.secret = "s";
    MemoryDoor door(box, setup);
    RunRanks(ranks, timeout_s, [&](World& world) {
      TcpMemorySetup client = ToBox(door.address());
      client.secret = "s";
      const auto memory = ConnectTcp(client);
      EXPECT_EQ(memory->way(), "fabric (" + provider + ") to " + door.address());
      WithMemory own(world, *memory);
      fn(own);
    });
  });
}
INSTANTIATE_TEST_SUITE_P(Cases, FabricWay,
                         testing::Combine(testing::Values(kTcp, kShm),
                                          testing::ValuesIn(MemoryCases())),
                         [](const testing::TestParamInfo<Case>& test) {
                           const bool shm = std::get<0>(test.param) == kShm;
                           return std::string(shm ? "shm" : "tcp") + std::get<1>(test.param).name;
                         });

// Wherever the connection is cut that the words take, each change is made once.
TEST(Fabric, EachChangeIsMadeOnceThroughCuts) {
  MemoryBox box(kSetup);
  MemoryDoor door(box, Offering(kTcp));
  constexpr size_t kHello = 112, kWord = sizeof(Word), kLength = 100'000;
  std::vector<size_t> cuts = {kHello + 1, kHello + kWord + 7};
  for (size_t i = 1; i < 10; ++i) cuts.push_back(kHello + 300 + i * kWord + i * 100);
  Cutter cutter(door.address(), cuts);
  const auto memory = ConnectTcp(ToBox(cutter.address()));
  const Region region = memory->Create("w", RegionType::kF32, kLength);
  const std::vector<float> ones(kLength, 1);
  std::vector<uint64_t> versions(24);
  for (size_t round = 0; round < versions.size() / 3; ++round) {
    std::vector<Ticket> tickets;
    for (size_t i = 0; i < 3; ++i) {
      tickets.push_back(memory->Accumulate(region, 0, ones, {}, &versions[3 * round + i]));
    }
    for (Ticket& ticket : tickets) ticket.Wait();
    std::vector<float> got(kLength);
    memory->Get(region, 0, got).Wait();
    EXPECT_EQ(std::set<float>(got.begin(), got.end()), std::set<float>{float(3 * round + 3)});
  }
  for (size_t i = 0; i < versions.size(); ++i) EXPECT_EQ(versions[i], i + 1);
  EXPECT_EQ(cutter.cut(), int(cuts.size()));
}

TEST(Fabric, SignalsStayWithTheirOwners) {
  struct sigaction before {
  }, after{};
  sigaction(SIGTERM, nullptr, &before);
  OpenFabricEnd(kShm, "127.0.0.1");
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(Fabric, TheFasterWayIsTakenAndNamed) {
  MemoryBox box(kSetup);
  MemoryDoor door(box, Offering(kTcp));
  const auto memory = ConnectTcp(ToBox(door.address(), LongValues::kFastest));
  const std::string way = memory->way();
  EXPECT_TRUE(way.starts_with("tcp to ") || way.starts_with("fabric (tcp;ofi_rxm) to ")) << way;
  EXPECT_TRUE(Has(way, "GB/s, by ")) << way;
  const Region region = memory->Create("w", RegionType::kF32, 300'000);
  std::vector<float> values(region.length), got(region.length);
  std::iota(values.begin(), values.end(), 0.0f);
  memory->Put(region, 0, values).Wait();
  memory->Get(region, 0, got).Wait();
  EXPECT_EQ(got, values);
}

TEST(Fabric, WhatCannotBeHadIsSaid) {
  MemoryBox box(kSetup);
  MemoryDoor plain(box, {});
  EXPECT_TRUE(Has(WhatOf([&] { ConnectTcp(ToBox(plain.address())); }), "offers no fabric"));
  EXPECT_EQ(ConnectTcp(ToBox(plain.address(), LongValues::kFastest))->way(),
            "tcp to " + plain.address());
  MemoryDoor door(box, Offering(kTcp));
  TcpMemorySetup without = ToBox(door.address());
  without.open_bulk = [](const std::string&, const std::string&) -> std::unique_ptr<BulkEnd> {
    throw Error("no plugin");
  };
  EXPECT_EQ(WhatOf([&] { ConnectTcp(without); }), "no plugin");
  without.long_values = LongValues::kFastest;
  EXPECT_EQ(ConnectTcp(without)->way(),
            "tcp to " + door.address() +
                "; fabric (tcp;ofi_rxm) is offered and cannot be used: no plugin");
  EXPECT_TRUE(Has(WhatOf([] { OpenFabricEnd("nothing", "127.0.0.1"); }),
                  "the provider nothing of libfabric"));
  const auto shm = OpenFabricEnd(kShm, "");
  EXPECT_TRUE(Has(WhatOf([&] { shm->Reach("another machine\nfi_shm://1"); }), "on one machine"));
  EXPECT_TRUE(Has(WhatOf([&] { shm->Reach("?"); }), "no address"));
}

}  // namespace
}  // namespace trireme
