#include "base/version.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Version, ABuildIsNamedByVersionAndCommit) {
  const std::string commit = "9000c29d0f2e4ab6a2b3c4d5e6f708192a3b4c5d";
  EXPECT_EQ(BuildText("0.1.0", commit), "0.1.0 (commit 9000c29d0f2e)");
  EXPECT_EQ(BuildText("0.1.0", commit + "-dirty"), "0.1.0 (commit 9000c29d0f2e-dirty)");
  EXPECT_EQ(BuildText("0.1.0", "unknown"), "0.1.0 (commit unknown)");
}

}  // namespace
}  // namespace trireme
