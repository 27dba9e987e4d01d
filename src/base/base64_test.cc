#include "base/base64.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Base64, IsThatOfTheRfc) {
  const char* const cases[][2] = {{"", ""},
                                  {"f", "Zg=="},
                                  {"fo", "Zm8="},
                                  {"foo", "Zm9v"},
                                  {"foob", "Zm9vYg=="},
                                  {"fooba", "Zm9vYmE="},
                                  {"foobar", "Zm9vYmFy"},
                                  {"\xFF\xFE", "//4="}};
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(Base64(bytes), text);
    EXPECT_TRUE(IsBase64(text));
  }
}

TEST(Base64, OtherTextIsNot) {
  for (const char* text : {"Zg=", "Z===", "Zg==Zg==", "Zm9\"", "Zm 9", "Zm-_"}) {
    EXPECT_FALSE(IsBase64(text)) << text;
  }
}

}  // namespace
}  // namespace trireme
