#include "trainer/preflight.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Preflight, RanksOfTwoBuildsAreToldApart) {
  const std::string one = "0.1.0 (commit 9000c29d0f2e)", other = "0.1.0 (commit 1190726aa0b1)";
  EXPECT_EQ(OtherBuild({one, one, one}), "");
  EXPECT_EQ(OtherBuild({one, one, other}),
            "rank 2's version of trireme differs from rank 0's: " + other + " and " + one +
                "; start all ranks with the same build");
  EXPECT_NE(OtherBuild({one, one + "-dirty"}), "");
}

TEST(Preflight, AClientOfAnotherBuildIsNotLetIn) {
  const auto fingerprint = [](const std::string& build) {
    return build + "\n1x1x4 samples, 3 classes, 843 weights\n0123\n[model]\nname = \"mlp\"\n";
  };
  const std::string own = fingerprint("0.1.0 (commit 9000c29d0f2e)");
  EXPECT_EQ(JudgeFingerprint(own, own, false), "");
  EXPECT_EQ(JudgeFingerprint(own, fingerprint("0.1.0 (commit 1190726aa0b1)"), false),
            "its version of trireme differs: 0.1.0 (commit 1190726aa0b1), the server's is 0.1.0 "
            "(commit 9000c29d0f2e)");
}

}  // namespace
}  // namespace trireme
