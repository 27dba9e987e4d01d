#include "base/text.h"

#include <gtest/gtest.h>

#include <limits>

namespace trireme {
namespace {

TEST(EditDistance, CountsSlipsOfTheHand) {
  EXPECT_EQ(EditDistance("", ""), 0u);
  EXPECT_EQ(EditDistance("", "abc"), 3u);
  EXPECT_EQ(EditDistance("period", "perod"), 1u);   // left out
  EXPECT_EQ(EditDistance("period", "preiod"), 1u);  // swapped
  EXPECT_EQ(EditDistance("period", "perioo"), 1u);  // replaced
  EXPECT_EQ(EditDistance("kitten", "sitting"), 3u);
}

TEST(EditDistance, IsAMetricOnShortWords) {
  const std::vector<std::string> words = {"", "a", "b", "ab", "ba", "abc", "acb", "cab", "bbb"};
  for (const auto& a : words) {
    for (const auto& b : words) {
      EXPECT_EQ(EditDistance(a, b), EditDistance(b, a));
      EXPECT_EQ(EditDistance(a, b) == 0, a == b);
    }
  }
}

TEST(Nearest, SuggestsOnlyWhatIsClose) {
  const std::vector<std::string> keys = {"batch", "epochs", "seed"};
  EXPECT_EQ(Nearest("bacth", keys), "batch");
  EXPECT_EQ(Nearest("epoch", keys), "epochs");
  EXPECT_EQ(Nearest("zzzzzz", keys), std::nullopt);
  EXPECT_EQ(Nearest("", keys), std::nullopt);
  EXPECT_EQ(Nearest("x", keys), std::nullopt);
  EXPECT_EQ(Nearest(std::string(1 << 20, 'b'), keys), std::nullopt);
  EXPECT_EQ(DidYouMean("sed", keys), "; did you mean seed?");
  EXPECT_EQ(DidYouMean("zzzzzz", keys), "");
}

TEST(Text, TrimsAndSplits) {
  EXPECT_EQ(Trim("  a b\r\n"), "a b");
  EXPECT_EQ(Trim(" \t "), "");
  EXPECT_EQ(Split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(Split("", ','), (std::vector<std::string>{""}));
}

TEST(ParseNumber, TakesTheWholeTextOrNothing) {
  EXPECT_EQ(ParseNumber<int>("-12"), -12);
  EXPECT_EQ(ParseNumber<int>("+12"), 12);
  EXPECT_EQ(ParseNumber<float>("1e-3"), 1e-3f);
  EXPECT_EQ(ParseNumber<uint64_t>("18446744073709551615"), std::numeric_limits<uint64_t>::max());
  for (const char* wrong : {"", " 1", "1 ", "1x", "0x10", "++1", "+-1", "3000000000", "1.5", "-"}) {
    EXPECT_EQ(ParseNumber<int>(wrong), std::nullopt) << wrong;
  }
  for (const char* wrong : {"nan", "inf", "-inf", "1e999", "1,5", "1.5.2", ".", "e5"}) {
    EXPECT_EQ(ParseNumber<double>(wrong), std::nullopt) << wrong;
  }
  EXPECT_EQ(ParseNumber<uint64_t>("-1"), std::nullopt);
}

TEST(IsUtf8, RefusesWhatTomlWouldRefuse) {
  EXPECT_TRUE(IsUtf8("pl\xC3\xA4in \xE2\x82\xAC \xF0\x9F\x9A\xA3"));
  EXPECT_FALSE(IsUtf8("\xE4"));              // Latin-1
  EXPECT_FALSE(IsUtf8("\xC0\xAF"));          // longer than needed
  EXPECT_FALSE(IsUtf8("\xED\xA0\x80"));      // surrogate
  EXPECT_FALSE(IsUtf8("\xF4\x90\x80\x80"));  // above U+10FFFF
  EXPECT_FALSE(IsUtf8("\x80"));
}

TEST(Format, ReadsWell) {
  EXPECT_EQ(FormatBytes(0), "0 B");
  EXPECT_EQ(FormatBytes(1023), "1023 B");
  EXPECT_EQ(FormatBytes(1536), "1.5 KiB");
  EXPECT_EQ(FormatBytes(1024.0 * 1024 - 1), "1.0 MiB");
  EXPECT_EQ(FormatBytes(46.8 * 1024 * 1024), "46.8 MiB");
  EXPECT_EQ(FormatSeconds(3.2e-6), "3.2 us");
  EXPECT_EQ(FormatSeconds(0.041), "41 ms");
  EXPECT_EQ(FormatSeconds(0.99999), "1.0 s");
  EXPECT_EQ(FormatSeconds(59.99), "1 min 00 s");
  EXPECT_EQ(FormatSeconds(125), "2 min 05 s");
  EXPECT_EQ(FormatSeconds(3720), "1 h 02 min");
  EXPECT_EQ(FormatSeconds(3 * 86400 + 4 * 3600 + 60), "3 d 04 h");
  EXPECT_EQ(FormatSeconds(std::numeric_limits<double>::infinity()), "?");
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(-999), "-999");
  EXPECT_EQ(FormatCount(-1000), "-1,000");
  EXPECT_EQ(FormatCount(11689512), "11,689,512");
  EXPECT_EQ(FormatCount(std::numeric_limits<int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(Counted(1, "step"), "1 step");
  EXPECT_EQ(Counted(0, "step"), "0 steps");
  EXPECT_EQ(Counted(1200, "step"), "1,200 steps");
  EXPECT_EQ(FormatLoss(2.3), "2.300");
  EXPECT_EQ(FormatLoss(1.67e-4), "0.0001670");
  EXPECT_EQ(FormatLoss(129045), "1.290e+05");
  EXPECT_EQ(FormatLoss(-std::numeric_limits<double>::quiet_NaN()), "nan");
}

}  // namespace
}  // namespace trireme
