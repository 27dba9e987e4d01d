#include "data/csv.h"

#include "data/csv_reader.h"
#include "data/testing.h"

namespace trireme {
namespace {

std::vector<std::vector<std::string>> Cut(std::string text) {
  CsvReader reader(text, "t");
  std::vector<std::vector<std::string>> records;
  std::vector<std::string_view> fields;
  while (reader.Next(fields)) records.emplace_back(fields.begin(), fields.end());
  return records;
}

using Rows = std::vector<std::vector<std::string>>;

TEST(CsvReader, CutsPlainFieldsAtAnyLineEnd) {
  const Rows expected = {{"a", "b"}, {"", "c "}};
  EXPECT_EQ(Cut("a,b\n,c \n"), expected);
  EXPECT_EQ(Cut("a,b\r\n,c \r\n"), expected);
  EXPECT_EQ(Cut("a,b\r,c "), expected);
  EXPECT_EQ(Cut("\xef\xbb\xbf\n\na,b\n\n\n,c \n\n"), expected);
  EXPECT_EQ(Cut("a,"), (Rows{{"a", ""}}));
  EXPECT_EQ(Cut(""), Rows{});
}

TEST(CsvReader, UnquotesCommasNewlinesAndDoubledQuotes) {
  EXPECT_EQ(Cut("\"a,b\",\"say \"\"hi\"\"\",\"x\r\ny\"\r\n\"\",2"),
            (Rows{{"a,b", "say \"hi\"", "x\r\ny"}, {"", "2"}}));
  EXPECT_EQ(Cut("\"\"\"\"\n5\" pipe,1"), (Rows{{"\""}, {"5\" pipe", "1"}}));
}

TEST(CsvReader, SaysWhereQuotesGoWrong) {
  EXPECT_TRUE(Holds(Refusal([] { Cut("1\n\"2\n3"); }), {"t:2:", "never closed"}));
  EXPECT_TRUE(Holds(Refusal([] { Cut("\"1\n2\"3"); }), {"t:2:", "after a closing quote"}));
}

class CsvTest : public testing::Test {
 protected:
  CsvTable Read(const std::string& text, const CsvRequest& request = {}) {
    return ReadCsv(folder_.Write("t.csv", text), request);
  }
  CsvTable Records(const std::string& text, const CsvRequest& request) {
    return ReadCsvRecords(folder_.Write("t.csv", text), request, {1, 1, 2});
  }
  std::string Refused(const std::string& text, const CsvRequest& request = {}) {
    return Refusal([&] { Read(text, request); });
  }

  TemporaryFolder folder_;
};

std::vector<float> Values(const CsvTable& table) {
  std::vector<float> all;
  std::vector<float> row(table.rows->shape().size());
  for (int64_t i = 0; i < table.rows->size(); ++i) {
    table.rows->Read(i, row);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

std::vector<int> LabelsOf(const CsvTable& table) {
  std::vector<int> labels;
  for (int64_t i = 0; i < table.rows->size(); ++i) labels.push_back(table.rows->label(i));
  return labels;
}

using Floats = std::vector<float>;
using Ints = std::vector<int>;
using Names = std::vector<std::string>;

TEST_F(CsvTest, ReadsNumbersAndTextLabelsWithoutHeader) {
  const CsvTable table = Read("5.1, +3.5 ,dog\n-1e-3,2,cat\n\"1\",.5,dog\n");
  EXPECT_EQ(Values(table), (Floats{5.1f, 3.5f, -1e-3f, 2, 1, .5f}));
  EXPECT_EQ(table.classes, (Names{"cat", "dog"}));
  EXPECT_EQ(LabelsOf(table), (Ints{1, 0, 1}));
}

TEST_F(CsvTest, FindsTheHeaderAndColumnsByNameOrNumber) {
  const std::string text = "Id,kind,a,b\r\n1,x,10,20\r\n2,y,30,40\r\n";
  for (const char* label : {"kind", "2"}) {
    for (const char* id : {"Id", "1"}) {
      const CsvTable table = Read(text, {.label = label, .id = id});
      EXPECT_EQ(Values(table), (Floats{10, 20, 30, 40}));
      EXPECT_EQ(table.classes, (Names{"x", "y"}));
    }
  }
}

TEST_F(CsvTest, TheLastColumnThatIsNotTheIdIsTheLabel) {
  const CsvTable table = Read("1,x,7\n2,y,8\n", {.id = "3"});
  EXPECT_EQ(Values(table), (Floats{1, 2}));
  EXPECT_EQ(table.classes, (Names{"x", "y"}));
}

TEST_F(CsvTest, ANamedColumnMakesAHeaderEvenOfNumbers) {
  const CsvTable table = Read("0,1,kind\n5,6,1\n7,8,2\n", {.label = "kind"});
  EXPECT_EQ(Values(table), (Floats{5, 6, 7, 8}));
}

TEST_F(CsvTest, SortsNumericLabelsAsNumbers) {
  const CsvTable table = Read("1,10\n2,9\n3,-1\n4,10\n");
  EXPECT_EQ(table.classes, (Names{"-1", "9", "10"}));
  EXPECT_EQ(LabelsOf(table), (Ints{2, 1, 0, 2}));
}

TEST_F(CsvTest, KeepsTheLabelNumbersOfGivenClasses) {
  const Names classes = {"dog", "cat", "cow"};
  const CsvTable table = Read("1,cow\n2,dog\n", {.classes = classes});
  EXPECT_EQ(LabelsOf(table), (Ints{2, 0}));
  EXPECT_EQ(table.classes, classes);
  EXPECT_TRUE(Holds(Refused("1,cow\n2,pig\n", {.classes = classes}),
                    {"t.csv:2:", "'pig' is none of the 3 known classes"}));
}

TEST_F(CsvTest, RefusesBrokenTablesWithLineAndReason) {
  EXPECT_TRUE(Holds(Refused("\n\n"), {"t.csv", "blank lines"}));
  EXPECT_TRUE(Holds(Refused("a,b,c\n"), {"t.csv", "a header, but no rows"}));
  EXPECT_TRUE(Holds(Refused("1,2,x\n1,y\n"), {"t.csv:2: 2 fields", "first line has 3"}));
  EXPECT_TRUE(Holds(Refused("1,\"2\n\",x\n"), {"t.csv", "no rows"}));
  EXPECT_TRUE(Holds(Refused("1,\"x\ny\"\n1,y,z\n"), {"t.csv:3: 3 fields"}));
  EXPECT_TRUE(Holds(Refused("a,b,k\n1,oops,x\n"), {"t.csv:2: column 2 ('b')", "'oops' is not"}));
  EXPECT_TRUE(Holds(Refused("1,1,x\n1,,x\n"), {"t.csv:2: column 2", "'' is not a finite"}));
  for (const char* bad : {"nan", "-inf", "INFINITY", "1e39", "0x10", "1.5.2", "+-1", "1 2"}) {
    EXPECT_TRUE(Holds(Refused(fmt::format("1,1,x\n1,{},y\n", bad)), {"t.csv:2: column 2", bad}));
  }
  EXPECT_TRUE(Holds(Refused("1,x\n2, \n"), {"t.csv:2:", "label is empty"}));
  EXPECT_TRUE(Holds(Refused("1,x\n2,x\n"), {"every row has the label 'x'"}));
  EXPECT_TRUE(Holds(Refused("1,0.5\n2,1.5\n"), {"'0.5' is no whole number", "data.label"}));
  EXPECT_TRUE(Holds(Refused("x\ny\n"), {"t.csv:1: 1 columns"}));
  EXPECT_TRUE(Holds(Refused("1,2,x\n", {.label = "kind"}), {"no column 'kind' (data.label)"}));
  EXPECT_TRUE(Holds(Refused("1,2,x\n", {.id = "4"}), {"no column 4 (data.id), the file has 3"}));
  EXPECT_TRUE(Holds(Refused("1,2,x\n", {.label = "3", .id = "3"}), {"same column 3"}));
}

TEST_F(CsvTest, RecordsMayLackLabelAndId) {
  const Names classes = {"x", "y"};
  const CsvRequest request = {.label = "kind", .id = "Id", .classes = classes};
  const auto expect = [&](const std::string& text, bool labelled) {
    const CsvTable table = Records(text, request);
    EXPECT_EQ(Values(table), (Floats{10, 20})) << text;
    EXPECT_EQ(LabelsOf(table), (Ints{labelled ? 1 : -1})) << text;
    EXPECT_EQ(table.labelled, labelled) << text;
  };
  expect("10,20\n", false);
  expect("a,b\n10,20\n", false);
  expect("10,20,y\n", true);
  expect("a,b,kind\n10,20,y\n", true);
  expect("kind,a,b\ny,10,20\n", true);
  expect("Id,a,b\n1,10,20\n", false);
  expect("a,Id,b\n10,1,20\n", false);
  expect("kind,Id,a,b\ny,1,10,20\n", true);
}

TEST_F(CsvTest, RecordsOfAnotherWidthAreRefused) {
  const Names classes = {"x", "y"};
  for (const char* text : {"1\n", "1,2,3,4\n", "kind,a\nx,1\n"}) {
    EXPECT_TRUE(Holds(Refusal([&] { Records(text, {.label = "kind", .classes = classes}); }),
                      {"t.csv:1:", "columns, but the model takes 2 values"}))
        << text;
  }
}

TEST_F(CsvTest, RecordsHaveTheShapeOfTheModel) {
  const Names classes = {"x", "y"};
  const CsvTable table =
      ReadCsvRecords(folder_.Write("t.csv", "1,2,3,4\n"), {.classes = classes}, {2, 2, 1});
  EXPECT_EQ(table.rows->shape(), (SampleShape{2, 2, 1}));
}

}  // namespace
}  // namespace trireme
