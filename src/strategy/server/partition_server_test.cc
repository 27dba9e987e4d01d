// A server of a partition, whose first server and client are played by hand.
#include "strategy/server/partition_server.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "strategy/server/partition.h"
#include "strategy/server/protocol.h"
#include "transport/threads/thread_link.h"

namespace trireme {
namespace {

constexpr double kSoon = 60;  // a busy machine must not make a test fail

// Clients hear of another life of the first server before or after this one does.
TEST(PartitionServer, BeginsAnewWithAnotherLifeOfTheFirst) {
  constexpr size_t kFloats = 40;
  constexpr int64_t kOld = int64_t(5) << kLivesFrom, kNew = int64_t(6) << kLivesFrom;
  ThreadLink to_first(kSoon, kSoon), to_client(kSoon, kSoon);
  Link &first = to_first.server(), &client = to_client.client();
  PartitionServer server({.first = &to_first.client(),
                          .clients = {&to_client.server()},
                          .floats = kFloats,
                          .rule = [](Device&) { return MakeAddRule(); }});
  std::jthread thread([&] { server.Run(nullptr); });
  const auto load = [&](int64_t life, float value) {
    Message message = PackPartition(kLoad, std::vector<float>(kFloats, value), nullptr);
    message.ints.insert(message.ints.begin(), LifeOf(life));
    first.Send(std::move(message));
  };
  const auto push = [&](int64_t lease, float value) {
    client.Send({.kind = kPartition, .ints = {lease}, .body = std::vector<float>(kFloats, value)});
  };
  const auto hear = [](Link& link, int kind) {
    Message message;
    EXPECT_EQ(link.Receive(message, After(kSoon)), Arrival::kMessage);
    EXPECT_EQ(message.kind, kind);
    return message;
  };
  using Ints = std::vector<int64_t>;
  load(kOld, 1);
  push(kOld + 1, 2);
  EXPECT_EQ(hear(first, kHas).ints, (Ints{kOld + 1, 0, 1}));
  push(kNew + 1, 3);    // from the other life, of which this server has not heard yet
  push(kNew + 2, NAN);  // also
  EXPECT_EQ(hear(first, kHas).ints, (Ints{kNew + 1, 0, 1}));
  EXPECT_EQ(hear(first, kHas).ints, (Ints{kNew + 2, 0, 0}));
  client.Send({.kind = kFetch, .ints = {9, 0}});  // waits for what was pushed before

  to_first.Renew();
  load(kNew, 10);
  EXPECT_EQ(hear(first, kHas).ints, (Ints{kNew + 1, 0, 1}));  // once more
  EXPECT_EQ(hear(first, kHas).ints, (Ints{kNew + 2, 0, 0}));
  first.Send({.kind = kForget, .ints = {kNew + 2, 0}});
  first.Send({.kind = kApply, .ints = {kNew + 1, 0, 0, BitsOf(1.0), 7}});
  const Message fetched = hear(client, kFetched);
  EXPECT_EQ(fetched.ints, Ints{9});
  EXPECT_EQ(fetched.body, std::vector<float>(kFloats, 13));  // and nothing of the old life
  first.Send({.kind = kOver});
}

}  // namespace
}  // namespace trireme
