#include "transport/tcp/hmac.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace trireme {
namespace {

std::string Hex(const Digest& digest) {
  std::string hex;
  for (const unsigned char c : digest) {
    hex += "0123456789abcdef"[c / 16];
    hex += "0123456789abcdef"[c % 16];
  }
  return hex;
}

TEST(Hmac, AgreesWithRfc4231) {
  EXPECT_EQ(Hex(HmacSha256(std::string(20, '\x0b'), "Hi There")),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(Hex(HmacSha256("Jefe", "what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(Hex(HmacSha256(std::string(131, '\xaa'),
                           "Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hmac, ComparesAndDraws) {
  const Digest a = HmacSha256("k", "a"), b = HmacSha256("k", "b");
  EXPECT_TRUE(SameDigest(a, a));
  EXPECT_FALSE(SameDigest(a, b));
  EXPECT_NE(RandomNumber(), RandomNumber());
}

TEST(Hmac, DrawsFromAFileWhereTheKernelHasNoCall) {
  Digest a{}, b{};
  FillRandomFrom("/dev/urandom", a);
  FillRandomFrom("/dev/urandom", b);
  EXPECT_FALSE(SameDigest(a, b));
  EXPECT_THROW(FillRandomFrom("/dev/null", a), Error);
  EXPECT_THROW(FillRandomFrom("/dev/none", a), Error);
}

}  // namespace
}  // namespace trireme
