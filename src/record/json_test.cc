#include "record/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace trireme {
namespace {

TEST(Json, WritesWhatWasAddedInOrder) {
  Json nested = Json::Object();
  nested.Add("data", 0.5);
  Json line = Json::Object();
  line.Add("epoch", 3).Add("loss", 0.25).Add("done", true).Add("device", "cpu");
  line.Add("times", nested).Add("confusion", std::vector<std::vector<int64_t>>{{1, 2}, {3, 4}});
  line.Add("none", {}).Add("empty", Json::Array()).Add("whole", 2.0).Add("epoch", 4);
  EXPECT_EQ(line.Text(),
            R"({"epoch":4,"loss":0.25,"done":true,"device":"cpu","times":{"data":0.5},)"
            R"("confusion":[[1,2],[3,4]],"none":null,"empty":[],"whole":2.0})");
}

TEST(Json, IndentsObjectsButNotPlainRows) {
  Json summary = Json::Object();
  summary.Add("confusion", std::vector<std::vector<int64_t>>{{1, 2}, {3, 4}}).Add("x", 1);
  EXPECT_EQ(summary.Text(2), "{\n  \"confusion\": [\n    [1,2],\n    [3,4]\n  ],\n  \"x\": 1\n}");
  EXPECT_EQ(ParseJson(summary.Text(2), "t").Text(), summary.Text());
}

TEST(Json, NumbersComeBackToTheBit) {
  std::mt19937_64 random(5);
  Json list = Json::Array();
  std::vector<double> values = {
      0.1, -0.0, 1e300, 5e-324, 1e22, 123456789012345680.0, std::numeric_limits<double>::max()};
  for (int i = 0; i < 2000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (std::isfinite(value)) values.push_back(value);
  }
  for (const double value : values) list.Append(value);
  list.Append(INT64_MIN).Append(INT64_MAX);
  const Json back = ParseJson(list.Text(), "t");
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(std::bit_cast<uint64_t>(back.Items()[i].AsDouble()),
              std::bit_cast<uint64_t>(values[i]));
  }
  EXPECT_EQ(back.Items()[values.size()].AsInt(), INT64_MIN);
  EXPECT_EQ(back.Items()[values.size() + 1].AsInt(), INT64_MAX);
}

TEST(Json, WhatIsNotFiniteIsNull) {
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Json(std::vector<double>{NAN, infinity, -infinity}).Text(), "[null,null,null]");
}

TEST(Json, StringsAreEscapedAndRepaired) {
  const std::string text = "quote \" slash \\ line\n zero" + std::string(1, '\0') + " \xc3\xa9";
  EXPECT_EQ(ParseJson(Json(text).Text(), "t").AsString(), text);
  EXPECT_EQ(Json("bad \xff!").Text(), "\"bad \xef\xbf\xbd!\"");
}

TEST(Json, MalformedTextIsAnErrorThatNamesTheFile) {
  const std::string deep(100000, '[');
  for (const std::string text : {"", "{", "[1,2", "{\"a\":1}x", "{\"a\":1,\"a\":2}", "nul",
                                 "\"\xff\"", "1e999", deep.c_str(), "{\"a\" 1}", "[1,]", "'a'"}) {
    try {
      ParseJson(text, "the-file");
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).rfind("the-file: ", 0), 0u) << error.what();
      EXPECT_LT(std::string(error.what()).size(), 400u);
    }
  }
}

TEST(Json, ReadingSaysWhatIsMissingOrOfAnotherKind) {
  const Json value = ParseJson(R"({"a":1,"b":"x","big":18446744073709551615})", "t");
  EXPECT_EQ(value.At("a").AsDouble(), 1.0);
  EXPECT_EQ(value.Find("c"), nullptr);
  EXPECT_THROW(value.At("c"), Error);
  EXPECT_THROW(value.At("b").AsInt(), Error);
  EXPECT_THROW(value.At("a").AsString(), Error);
  EXPECT_THROW(value.At("a").At("x"), Error);
  EXPECT_THROW(value.At("big").AsInt(), Error);
}

}  // namespace
}  // namespace trireme
