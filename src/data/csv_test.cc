#include "data/csv.h"

#include "base/label.h"
#include "base/text.h"
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
                    {"t.csv:2:", "'pig' is not one of the 3 known classes"}));
}

TEST_F(CsvTest, RefusesBrokenTablesWithLineAndReason) {
  EXPECT_TRUE(Holds(Refused("\n\n"), {"t.csv", "blank lines"}));
  EXPECT_TRUE(Holds(Refused("a,b,c\n"), {"t.csv", "a header, but no rows"}));
  EXPECT_TRUE(Holds(Refused("1,2,x\n1,y\n"), {"t.csv:2: 2 fields", "first line has 3"}));
  EXPECT_TRUE(Holds(Refused("1,\"2\n\",x\n"), {"t.csv", "no rows"}));
  EXPECT_TRUE(Holds(Refused("1,\"x\ny\"\n1,y,z\n"), {"t.csv:3: 3 fields"}));
  EXPECT_TRUE(
      Holds(Refused("a,b,k\n1,2,x\n1,oops,x\n"), {"t.csv:3: column 2 ('b')", "'oops' is not"}));
  EXPECT_TRUE(Holds(Refused("1,1,x\n1,,x\n"), {"t.csv:2: column 2", "'' is not a finite"}));
  for (const char* bad : {"nan", "-inf", "INFINITY", "1e39", "0x10", "1.5.2", "+-1", "1 2"}) {
    EXPECT_TRUE(Holds(Refused(fmt::format("1,1,x\n1,{},y\n", bad)), {"t.csv:2: column 2", bad}));
  }
  EXPECT_TRUE(Holds(Refused("1,x\n2, \n"), {"t.csv:2:", "label is empty"}));
  EXPECT_TRUE(Holds(Refused("1,x\n2,x\n"), {"every row has the label 'x'"}));
  EXPECT_TRUE(Holds(Refused("x\ny\n"), {"t.csv:1: 1 column;"}));
  EXPECT_TRUE(Holds(Refused("1,2,x\n", {.label = "kind"}),
                    {"no column 'kind' (data.label)", "'1', '2', 'x'"}));
  EXPECT_TRUE(Holds(Refused("Id,a,k\n1,2,x\n", {.id = "id"}), {"did you mean Id?"}));
  EXPECT_TRUE(Holds(Refused("1,2,x\n", {.id = "4"}), {"no column 4 (data.id); the file has 3"}));
  EXPECT_TRUE(Holds(Refused("1,2,x\n", {.label = "3", .id = "3"}), {"same column 3"}));
}

TEST_F(CsvTest, FindsTheSeparator) {
  const auto expect = [&](const std::string& text) {
    const CsvTable table = Read(text);
    EXPECT_EQ(Values(table), (Floats{1.5f, 2, 2.5f, 3})) << text;
    EXPECT_EQ(table.classes, (Names{"x", "y"})) << text;
  };
  expect("a,b,k\n1.5,2,x\n2.5,3,y\n");
  expect("a;b;k\n1.5;2;x\n2.5;3;y\n");
  expect("a;b;k\n1,5;2;x\n2,5;3;y\n");  // decimal commas
  expect("1,5;2,0;x\n2,5;3,0;y\n");
  expect("a\tb\tk\n1.5\t2\tx\n2.5\t3\ty\n");
  expect("\"a,1\";\"b,1\";k\n1.5;2;x\n2.5;3;y\n");
  EXPECT_TRUE(Holds(Refused("a;b;k\n1;2;x\n1;2\n"), {"t.csv:3: 2 fields", "first line has 3"}));
  EXPECT_TRUE(Holds(Refused("a,k\n\"1,5\",x\n2,y\n3,y\n"), {"'1,5'", "write 1.5"}));
  EXPECT_EQ(Read("5;6,1,x\n5;6,2,y\n5;6,3,x\n", {.categories = 3}).codes[0].categories,
            Names{"5;6"});
}

TEST_F(CsvTest, TextsBecomeOneInputEach) {
  const std::string rows = "red,1,x\ngreen,2,y\n\"red\",3,x\nblue,4,y\n";
  const Floats values = {0, 0, 1, 1, 0, 1, 0, 2, 0, 0, 1, 3, 1, 0, 0, 4};
  for (const std::string header : {"", "colour,n,k\n"}) {
    const CsvTable table = Read(header + rows, {.categories = 3});
    EXPECT_EQ(Values(table), values) << header;
    ASSERT_EQ(table.codes.size(), 2u);
    EXPECT_EQ(table.codes[0].categories, (Names{"blue", "green", "red"}));
    EXPECT_FALSE(table.codes[1].text());
    EXPECT_TRUE(table.notes.empty());
    EXPECT_TRUE(Holds(table.summary, {"one input for each", "column 1", ": 3"}));
  }
  EXPECT_TRUE(Holds(Refused(rows, {.categories = 2}), {"column 1 holds more than 2 different texts",
                                                       "data.id=1", "data.categories"}));
  EXPECT_TRUE(Holds(Refused("colour,n,k\n" + rows),
                    {"column 1 ('colour') is text", "'red'", "data.id=colour"}));
}

TEST_F(CsvTest, AHeaderOverTextsIsFound) {
  const CsvRequest request = {.categories = 5};
  EXPECT_EQ(Read("a,b,k\nu,v,x\nw,v,y\n", request).rows->size(), 2);  // u, v, x come again: no
  EXPECT_EQ(Read("u,v,x\nw,v,y\nu,v,x\n", request).rows->size(), 3);
  EXPECT_EQ(Read("u,1,x\nw,2,y\n", request).rows->size(), 2);  // a number where numbers are
  EXPECT_EQ(Read("u,,x\nw,2,y\nw,3,y\n", {.categories = 5, .fill_in = true}).rows->size(), 3);
}

TEST_F(CsvTest, DatesAndNamesAreRefusedByColumn) {
  const CsvRequest request = {.categories = 5};
  for (const char* date :
       {"2024-01-31", "31.1.2024", "1/31/24", "2024-01-31T10:00", "1.2.24 9:15"}) {
    EXPECT_TRUE(Holds(Refused(fmt::format("when,k\n{0},x\n{0},y\n", date), request),
                      {"column 1 ('when') holds dates", date, "data.id=when"}));
  }
  EXPECT_EQ(Read("v,k\n1.2.3.4,x\n1.2.3.5,y\n", request).codes[0].inputs(), 2);  // no date
  EXPECT_TRUE(Holds(Refused("v,k\n\xe4,x\nb,y\n", request), {"column 1 ('v')", "not UTF-8"}));
  // Few texts among numbers are mistakes.
  EXPECT_TRUE(Holds(Refused("v,k\n1,x\n2,y\nthree,x\n", request), {"t.csv:4:", "'three' is not"}));
}

TEST_F(CsvTest, MissingNumbersAreTheMedianAndFlagged) {
  const CsvRequest request = {.fill_in = true};
  for (const char* missing : {"", " ", "?", "NA", "n/a", "NaN", "null", "None"}) {
    const CsvTable table =
        Read(fmt::format("a,b,k\n1,5,x\n{},6,y\n9,7,x\n2,8,y\n", missing), request);
    EXPECT_EQ(Values(table), (Floats{1, 0, 5, 2, 1, 6, 9, 0, 7, 2, 0, 8})) << missing;
    EXPECT_EQ(table.codes, (ColumnCodes{{{}, 2.0f, true}, {{}, 6.5f, false}})) << missing;
    ASSERT_EQ(table.notes.size(), 1u);
    EXPECT_TRUE(Holds(table.notes[0], {"1 field missing", "median"}));
  }
  EXPECT_TRUE(Holds(Refused("a,b,k\n1,5,x\n,6,y\n"),
                    {"t.csv:3: column 1 ('a')", "'' is not a finite number", "data.missing"}));
  EXPECT_TRUE(Holds(Refused("a,b,k\n,5,x\n?,6,y\n", request),
                    {"column 1 ('a'): every field is missing", "data.id=a"}));
  EXPECT_TRUE(Holds(Refused("a,k\n1,x\n2,\n", request), {"t.csv:3: the label is empty"}));
}

TEST_F(CsvTest, OtherFilesAreReadByTheCodesOfTheFirst) {
  const CsvRequest request = {.categories = 5, .fill_in = true};
  const CsvTable train = Read("a,c,n,k\n1,red,5,x\n,blue,6,y\n3,red,7,x\n", request);
  CsvRequest known = request;
  known.classes = train.classes;
  known.columns = train.columns;
  known.codes = train.codes;
  const auto read = [&](const std::string& text) {
    return ReadCsvRecords(folder_.Write("t.csv", text), known, train.rows->shape());
  };
  EXPECT_EQ(Values(read("n;c;a\n8;blue;4\n")), (Floats{4, 0, 1, 0, 8}));
  const CsvTable table = read("a,c,n,k\n,pink,,y\n1,,9,x\n");
  EXPECT_EQ(Values(table), (Floats{2, 1, 0, 0, 6, 1, 0, 0, 0, 9}));
  ASSERT_EQ(table.notes.size(), 2u);
  EXPECT_TRUE(Holds(table.notes[0], {"column 2 ('c')", "1 text not in the training", "'pink'"}));
  EXPECT_TRUE(Holds(table.notes[1], {"3 fields missing"}));
  known.columns = {};  // by their places, with or without label and header
  EXPECT_EQ(Values(read("4,blue,8\n")), (Floats{4, 0, 1, 0, 8}));
  EXPECT_EQ(Values(read("4,blue,8,y\n")), (Floats{4, 0, 1, 0, 8}));
  EXPECT_EQ(Values(read("p,q,r\n4,blue,8\n")), (Floats{4, 0, 1, 0, 8}));
  EXPECT_TRUE(Holds(Refusal([&] { read("1,2\n"); }), {"2 columns, but the model takes 3 values"}));
}

TEST_F(CsvTest, OtherEncodingsAreNamedAndNothingIsShownRaw) {
  const std::string latin = Refused("1,b\xe4r\n2,x\n");
  EXPECT_TRUE(Holds(latin, {"t.csv:1: the label 'b\\xe4r' is not UTF-8", "Latin-1"}));
  EXPECT_TRUE(IsUtf8(latin));
  EXPECT_TRUE(Holds(Refused({"\xff\xfe"
                             "1\0,\0x\0",
                             8}),
                    {"t.csv", "is UTF-16", "as UTF-8"}));
  EXPECT_TRUE(Holds(Refused({"\xfe\xff\0"
                             "1\0,\0x",
                             8}),
                    {"UTF-16"}));
  EXPECT_TRUE(Holds(Refused({"1\0,\0x\0", 6}), {"UTF-16"}));
  EXPECT_TRUE(Read("1,\xc3\xa4\n2,x\n").notes.empty());
}

TEST_F(CsvTest, LabelsThatNameEachRowAreRefused) {
  std::string prices = "rooms,price\n", names = "rooms,owner\n", classes = "rooms,class\n";
  for (int i = 0; i < 60; ++i) {
    prices += fmt::format("{},{}\n", i % 7, 100000 + 137 * i);
    names += fmt::format("{},owner {}\n", i % 7, i);
    classes += fmt::format("{},{}\n", i % 7, i % 30);
  }
  EXPECT_TRUE(Holds(Refused(prices, {.task = Task::kClassification}),
                    {"60 different labels in 60 rows", "'100000'", "a quantity", "data.task"}));
  EXPECT_TRUE(Holds(Refused(names), {"60 different labels", "a name for each row", "data.label"}));
  EXPECT_EQ(Read(classes).classes.size(), 30u);
  EXPECT_EQ(Read("1,a\n2,b\n3,c\n").classes.size(), 3u);  // few rows
}

// Rows "1,7,a", "2,7,b", ...
std::string CountedRows(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += fmt::format("{},7,{}\n", i, i % 2 ? "a" : "b");
  return text;
}

TEST_F(CsvTest, AColumnThatNumbersTheRowsIsNoted) {
  const auto note = [&](const std::string& text, const CsvRequest& request = {}) {
    const Names notes = Read(text, request).notes;
    return notes.size() == 1 ? notes[0] : fmt::format("{} notes", notes.size());
  };
  EXPECT_TRUE(Holds(note("Id,x,k\n" + CountedRows(12)),
                    {"t.csv: column 1 ('Id') numbers the rows", "--set data.id=Id"}));
  EXPECT_TRUE(Holds(note(CountedRows(12)), {"column 1 numbers the rows", "--set data.id=1"}));
  EXPECT_TRUE(Holds(note(",x,k\n" + CountedRows(12)), {"column 1 ('')", "--set data.id=1"}));
  EXPECT_TRUE(Holds(note("row no,x,k\n" + CountedRows(12)), {"('row no')", "data.id=1"}));
  EXPECT_TRUE(Holds(note("x,ID,k\n" + CountedRows(3)), {"column 2 ('ID')", "--set data.id=ID"}));
  EXPECT_EQ(note(CountedRows(5)), "0 notes");  // too few to tell
  EXPECT_EQ(note("Id,x,k\n" + CountedRows(12), {.id = "Id"}), "0 notes");
  const Names classes = {"a", "b"};
  EXPECT_EQ(note("id,x,k\n" + CountedRows(12), {.classes = classes, .columns = {{"id", "x"}, "k"}}),
            "0 notes");  // said in training
}

TEST_F(CsvTest, AFirstLineOfNumbersThatFitsNoRowIsNoted) {
  std::string rows;
  for (int i = 0; i < 12; ++i) rows += fmt::format("{},{},{}\n", 2 * i, 3 * i + 1, i % 3);
  EXPECT_TRUE(Read(rows).notes.empty());
  const CsvTable table = Read("2019,2020,2021\n" + rows);
  EXPECT_EQ(table.rows->size(), 13);
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_TRUE(Holds(table.notes[0], {"first line is read as a sample", "data.label=2021"}));
  const CsvTable named = Read("2019,2020,2021\n" + rows, {.label = "2021"});  // and that helps
  EXPECT_EQ(named.rows->size(), 12);
  EXPECT_TRUE(named.notes.empty());
  EXPECT_TRUE(Holds(Read("0,1,3\n" + rows).notes.at(0), {"names that are not numbers"}));
  EXPECT_TRUE(Read("0.5,7,9\n" + rows).notes.empty());  // no name is a fraction
}

std::vector<float> Numbers(const CsvTable& table) {
  std::vector<float> numbers;
  for (const int label : LabelsOf(table)) numbers.push_back(NumberOfLabel(label));
  return numbers;
}

TEST_F(CsvTest, NumbersThatAreNoClassesArePredicted) {
  const CsvTable table = Read("size,price\n1,0.5\n2,1.5\n3,1.5\n");
  EXPECT_EQ(table.task, Task::kRegression);
  EXPECT_EQ(Numbers(table), (Floats{0.5f, 1.5f, 1.5f}));
  EXPECT_TRUE(table.classes.empty());
  EXPECT_TRUE(Holds(table.summary, {"column 2 ('price')", "number", "data.task=classification"}));
  EXPECT_EQ(Numbers(Read("a;b\n1;2,5\n2;-1e3\n")), (Floats{2.5f, -1000}));

  // As classes, if they are asked for, and the other way round.
  const CsvTable classes = Read("1,0.5\n2,1.5\n", {.task = Task::kClassification});
  EXPECT_EQ(classes.classes, (Names{"0.5", "1.5"}));
  const CsvTable whole = Read("1,2\n2,3\n3,2\n", {.task = Task::kRegression});
  EXPECT_EQ(whole.task, Task::kRegression);
  EXPECT_EQ(Numbers(whole), (Floats{2, 3, 2}));
  EXPECT_EQ(whole.summary, "");  // nothing was found by itself
  EXPECT_EQ(Read("1,2\n2,3\n3,2\n").task, Task::kClassification);
  EXPECT_EQ(Read("1,2.0\n2,3.0\n3,2.0\n").classes, (Names{"2.0", "3.0"}));

  EXPECT_TRUE(Holds(Refused("1,2\n2,x\n", {.task = Task::kRegression}),
                    {"t.csv:2:", "label 'x' is not a finite number"}));
  EXPECT_TRUE(Holds(Refused("1,2\n2,NA\n", {.task = Task::kRegression}),
                    {"t.csv:2:", "'NA'", "remove the row"}));
  EXPECT_TRUE(Holds(Refused("1,2.5\n2,NA\n3,3.5\n"), {"some are missing ('NA')"}));
  EXPECT_TRUE(Holds(Refused("1,2.5\n2,2.5\n"), {"every row has the label '2.5'"}));
}

TEST_F(CsvTest, ATableToTestWithIsReadAsTheTrainingWas) {
  const CsvTable train = Read("a,price\n1,0.5\n2,1.5\n");
  const CsvRequest as_trained{.columns = train.columns, .codes = train.codes, .task = train.task};
  EXPECT_EQ(Numbers(Read("price,a\n2,1\n2,2\n", as_trained)),
            (Floats{2, 2}));  // even if all are equal
  EXPECT_TRUE(Holds(Refused("a,price\n1,cheap\n", as_trained), {"t.csv:2:", "'cheap'"}));
}

TEST_F(CsvTest, LabelsThatCannotBeLearntAreRefused) {
  std::string names = "rooms,owner\n", dates = "rooms,when\n", nothing = "rooms,price\n";
  for (int i = 0; i < 20'000; ++i) names += fmt::format("{},owner {}\n", i % 7, i % 5000);
  for (int i = 0; i < 50; ++i) {
    dates += fmt::format("{},2024-01-{:02}\n", i % 7, i % 28 + 1);
    nothing += fmt::format("{},NA\n", i % 7);
  }
  EXPECT_TRUE(Holds(Refused(names), {"5,000 different labels in 20,000 rows", "data.label",
                                     "data.task=classification"}));
  EXPECT_EQ(Read(names, {.task = Task::kClassification}).classes.size(), 5000u);
  EXPECT_TRUE(Holds(Refused(dates), {"the label, column 2 ('when'), holds dates", "'2024-01-01'",
                                     "write a number instead", "data.label"}));
  EXPECT_TRUE(Holds(Refused(nothing), {"the label, column 2 ('price')", "every field is missing"}));
}

TEST_F(CsvTest, ManyNumbersWithFewRowsEachArePredicted) {
  std::string prices, words, few;
  for (int i = 0; i < 300; ++i) {
    prices += fmt::format("{},{}\n", i % 7, 1000 * (i % 60));
    words += fmt::format("{},street {}\n", i % 7, i % 60);
    few += fmt::format("{},{}\n", i % 7, i % 10);
  }
  EXPECT_EQ(Read(prices).task, Task::kRegression);
  EXPECT_EQ(Read(prices, {.task = Task::kClassification}).classes.size(), 60u);
  EXPECT_EQ(Read(words).task, Task::kClassification);
  EXPECT_EQ(Read(few).task, Task::kClassification);
}

TEST_F(CsvTest, SeveralColumnsMayBeLeftOut) {
  const std::string text = "Id,a,b,when,kind\n1,10,20,5,x\n2,30,40,6,y\n";
  for (const char* id : {"Id,when", "1, when", "4,1"}) {
    const CsvTable table = Read(text, {.id = id});
    EXPECT_EQ(Values(table), (Floats{10, 20, 30, 40})) << id;
    EXPECT_EQ(table.columns, (ColumnNames{{"a", "b"}, "kind", table.columns.ids})) << id;
    EXPECT_EQ(table.columns.ids.size(), 2u);
  }
  EXPECT_EQ(Values(Read("\"x, y\",a,k\n1,2,m\n3,4,n\n", {.id = "x, y"})), (Floats{2, 4}));
  EXPECT_TRUE(Holds(Refused(text, {.id = "Id,wen"}), {"no column 'wen'", "did you mean when?"}));
}

TEST_F(CsvTest, KnownColumnsAreSortedAndOthersRefused) {
  const Names classes = {"x", "y"};
  const CsvRequest request = {
      .id = "Id", .classes = classes, .columns = {{"a", "b"}, "kind", {"Id"}}};
  const auto expect = [&](const std::string& text, bool labelled) {
    const CsvTable table = Records(text, request);
    EXPECT_EQ(Values(table), (Floats{10, 20})) << text;
    EXPECT_EQ(table.labelled, labelled) << text;
    EXPECT_TRUE(table.notes.empty());
    if (!labelled || !text.ends_with("20,10,y\n")) return;
    EXPECT_EQ(Values(Read(text, request)), (Floats{10, 20})) << text;
  };
  expect("a,b\n10,20\n", false);
  expect("b,a\n20,10\n", false);
  expect("kind,b,a\ny,20,10\n", true);
  expect(" b ,\"a\",kind\n20,10,y\n", true);
  expect("kind,b,Id,a\ny,20,7,10\n", true);
  expect("10,20\n", false);  // no header: by place
  expect("10,20,y\n", true);
  const auto refused = [&](const std::string& text) {
    return Refusal([&] { Records(text, request); });
  };
  EXPECT_TRUE(Holds(refused("a,c\n1,2\n"), {"t.csv:1:", "missing 'b', unknown 'c'"}));
  EXPECT_TRUE(Holds(refused("p,q\n1,2\n"), {"missing 'a', 'b', unknown 'p', 'q'"}));
  EXPECT_TRUE(Holds(refused("a,b,age\n1,2,3\n"), {"unknown 'age'"}));
  EXPECT_TRUE(Holds(refused("a,a,b\n1,2,3\n"), {"unknown 'a'"}));
  EXPECT_TRUE(Holds(Refused("b,a\n1,2\n", request), {"missing 'kind'"}));
}

TEST_F(CsvTest, ColumnsThatWereNotRememberedAreTakenByTheirPlaces) {
  const Names classes = {"x", "y"};
  const CsvTable table = Records("p,q,kind\n10,20,y\n", {.classes = classes});
  EXPECT_EQ(Values(table), (Floats{10, 20}));
  ASSERT_EQ(table.notes.size(), 1u);
  EXPECT_TRUE(Holds(table.notes[0], {"t.csv", "matched by position"}));
  EXPECT_TRUE(Records("10,20,y\n", {.classes = classes}).notes.empty());
  EXPECT_EQ(Read("1,2,x\n3,4,y\n").columns, ColumnNames{});
  EXPECT_EQ(Read("a,a,k\n1,2,x\n3,4,y\n").columns, ColumnNames{});  // cannot be told apart
  EXPECT_EQ(Read("\xe4,b,k\n1,2,x\n3,4,y\n").columns, ColumnNames{});
}

TEST_F(CsvTest, NamesThatAreNumbersCountIfAllAreThere) {
  const Names classes = {"x", "y"};
  const CsvRequest request = {.classes = classes, .columns = {{"2019", "2020"}, "2021"}};
  EXPECT_EQ(Values(Records("2020,2019\n1,2\n", request)), (Floats{2, 1}));
  EXPECT_EQ(Values(Records("2020,7\n1,2\n", request)), (Floats{2020, 7, 1, 2}));
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
