#include "data/fields.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Fields, AreWhatStoodInTheColumns) {
  const ColumnCodes codes = {
      {}, {.categories = {"red", "blue"}}, {.fill = 7.0f, .flagged = true}, {}};
  const ColumnNames names{.values = {"x", "colour", "y"}};
  EXPECT_EQ(FieldNames(names, codes, 6),
            (std::vector<std::string>{"x", "colour", "y", "column 4"}));
  using Texts = std::vector<std::string>;
  EXPECT_EQ(FieldsOf(std::vector<float>{1.5, 0, 1, 7, 1, -3}, codes),
            (Texts{"1.5", "blue", "", "-3"}));
  EXPECT_EQ(FieldsOf(std::vector<float>{1.5, 0, 0, 7, 0, 1e6f}, codes),
            (Texts{"1.5", "", "7", "1e+06"}));
}

TEST(Fields, WithoutCodesAreNumbers) {
  EXPECT_EQ(FieldNames({}, {}, 2), (std::vector<std::string>{"column 1", "column 2"}));
  EXPECT_EQ(FieldsOf(std::vector<float>{0.25, 2}, {}), (std::vector<std::string>{"0.25", "2"}));
}

}  // namespace
}  // namespace trireme
