// eval and predict see samples as training did.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "support/whole_test.h"

namespace trireme::whole {
namespace {

// An idx file of bytes.
std::string Idx(std::initializer_list<uint32_t> dims, const std::string& bytes) {
  std::string file = {0, 0, 8, char(dims.size())};
  for (const uint32_t dim : dims) {
    for (const int shift : {24, 16, 8, 0}) file += char(dim >> shift & 255);
  }
  return file + bytes;
}

class PredictTest : public WholeTest {
 protected:
  std::vector<Json> Lines(const std::string& text) {
    std::vector<Json> lines;
    for (const std::string& line : Split(text, '\n')) {
      if (!line.empty()) lines.push_back(ParseJson(line, "line"));
    }
    return lines;
  }

  // Pictures that are bright in the row of their class, height x 4 x channels, and their labels.
  struct Pictures {
    std::string pixels, labels;
  };
  Pictures Draw(int count, int height, int channels, bool channels_first) {
    Pictures made;
    for (int i = 0; i < count; ++i) {
      const int label = i * 7 % 3;
      made.labels += char(label);
      const auto pixel = [&](int y, int x) { return char(y == label ? 200 + x + i % 9 : i % 31); };
      const int outer = channels_first ? channels : 1, inner = channels_first ? 1 : channels;
      for (int o = 0; o < outer; ++o) {
        for (int y = 0; y < height; ++y) {
          for (int x = 0; x < 4 * inner; ++x) made.pixels += pixel(y, x / inner);
        }
      }
    }
    return made;
  }
};

TEST_F(PredictTest, EvalRepeatsTheSummary) {
  for (const Words& words : {Words{"--out", "a"}, Words{"--out", "b", "--ranks", "3"},
                             Words{"--out", "c", "--ranks", "3", "--strategy", "easgd"}}) {
    Succeed(Words{"train", "--epochs", "9.5"} + words);
    const std::string run = words[1];
    const Json evaluated = ParseJson(Succeed({"eval", run, "--json"}).out, "eval");
    EXPECT_EQ(evaluated.At("test_accuracy").AsDouble(), Number(run, "test_accuracy"));
    EXPECT_NEAR(evaluated.At("test_loss").AsDouble(), Number(run, "test_loss"), 1e-6);
    EXPECT_EQ(evaluated.At("confusion").Text(), Summary(run).At("confusion").Text());
  }
  EXPECT_NE(Succeed({"eval", "a"}).out.find("Iris-setosa"), std::string::npos);
  const Json again = ParseJson(Succeed({"eval", "a", "--device", "ref", "--json"}).out, "eval");
  EXPECT_NEAR(again.At("test_loss").AsDouble(), Number("a", "test_loss"), 1e-5);
}

TEST_F(PredictTest, EvalOnOtherData) {
  Succeed({"train", "--out", "a"});
  Write("other.csv",
        "sl,sw,pl,pw,kind\n5.1,3.5,1.4,0.2,Iris-setosa\n4.9,3.0,1.4,0.2,Iris-setosa\n"
        "6.3,3.3,6.0,2.5,Iris-virginica\n5.8,2.7,5.1,1.9,Iris-virginica\n"
        "4.7,3.2,1.3,0.2,Iris-setosa\n");
  const Json result =
      ParseJson(Succeed({"eval", "a", "--data", "csv:other.csv", "--json"}).out, "e");
  EXPECT_EQ(result.At("test_accuracy").AsDouble(), 1);
  Refuse({"eval", "a", "--data", "synthetic:8x8x1:3:50"}, 1, {"8x8x1", "1x1x4"});
  Write("strange.csv", "1,2,3,4,rose\n1,2,3,4,tulip\n1,2,3,4,rose\n1,2,3,4,rose\n1,2,3,4,rose\n");
  Refuse({"eval", "a", "--data", "csv:strange.csv"}, 1, {"rose"});
}

TEST_F(PredictTest, StreamsAreReadOnce) {
  Succeed({"train", "--out", "a"});
  Write("rows.csv", "5.1,3.5,1.4,0.2\n6.3,3.3,6.0,2.5\n");
  Write("bad.csv", "5.1,3.5,1.4,0.2\n6.3,x,6.0,2.5\n");
  const std::string expected = Succeed({"predict", "a", "csv:rows.csv"}).out;
  const auto predict = [&](const std::string& name, const std::string& rows) {
    return Run({"predict", "a", name}, kTimeout, {"sh", "-c", "cat " + rows + " | \"$@\"", "sh"});
  };
  for (const std::string name : {"-", "/dev/stdin", "csv:-"}) {
    const Outcome outcome = predict(name, "rows.csv");
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    std::string wanted = expected;
    for (size_t at; (at = wanted.find("csv:rows.csv")) != wanted.npos;)
      wanted.replace(at, 12, name);
    EXPECT_EQ(outcome.out, wanted);
  }
  const Outcome wrong = predict("-", "bad.csv");
  EXPECT_EQ(wrong.exit_code, 1);
  EXPECT_NE(wrong.err.find("/dev/stdin:2: "), std::string::npos) << wrong.err;
}

// Rows of two classes that one look at x tells apart; the columns in the given order.
std::string Table(const std::string& header, int count) {
  std::string text = header + "\n";
  for (int i = 0; i < count; ++i) {
    for (const std::string& name : Split(header, ',')) {
      const int bright = i % 2;
      text += name == "x"    ? std::to_string(bright * 10 + i % 3)
              : name == "y"  ? std::to_string(i % 5)
              : name == "Id" ? std::to_string(i)
                             : std::string(bright ? "yes" : "no");
      text += name == Split(header, ',').back() ? "\n" : ",";
    }
  }
  return text;
}

TEST_F(PredictTest, ColumnsAreFoundByTheirNames) {
  Write("train.csv", Table("x,y,kind", 60));
  Write("turned.csv", Table("kind,y,x", 20));
  Write("bare.csv", Table("y,x", 4));
  Write("other.csv", Table("x,z,kind", 20));
  Succeed({"train", "--data", "csv:train.csv,turned.csv", "--model", "mlp:2-8-2", "--epochs", "20",
           "--lr", "0.02", "--out", "a"});
  EXPECT_EQ(Number("a", "test_accuracy"), 1);
  for (const Words& words : {Words{"eval", "a"}, Words{"eval", "a", "--data", "csv:turned.csv"}}) {
    const Json result = ParseJson(Succeed(words + Words{"--json"}).out, "eval");
    EXPECT_EQ(result.At("samples").AsInt(), 20);
    EXPECT_EQ(result.At("test_accuracy").AsDouble(), 1);
  }
  EXPECT_NE(Succeed({"eval", "a"}).out.find("20 (the test part of csv:train.csv,turned.csv)"),
            std::string::npos);
  EXPECT_NE(Succeed({"eval", "a", "--data", "csv:train.csv"}).out.find("60 (all of csv:train.csv)"),
            std::string::npos);
  const Outcome bare = Succeed({"predict", "a", "bare.csv", "--json"});
  EXPECT_EQ(bare.err.find("warning"), std::string::npos) << bare.err;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(Lines(bare.out)[size_t(i)].At("class").AsString(), i % 2 ? "yes" : "no");
  }
  Refuse({"predict", "a", "other.csv"}, 1, {"other.csv:1", "missing 'y'", "unknown 'z'"});
  Refuse({"eval", "a", "--data", "csv:other.csv"}, 1, {"missing 'y'", "unknown 'z'"});
}

TEST_F(PredictTest, MistakesInATableAreItsRows) {
  std::string text = Table("x,y,kind", 60);
  text += "10,3,no\n0,3,yes\n";  // labelled wrongly, in records 60 and 61
  Write("train.csv", Table("x,y,kind", 60));
  Write("test.csv", text);
  Succeed({"train", "--data", "csv:train.csv,test.csv", "--model", "mlp:2-8-2", "--epochs", "20",
           "--lr", "0.02", "--out", "a"});
  const Json mistakes = ParseJson(Read("a/mistakes.json"), "mistakes");
  EXPECT_EQ(mistakes.At("columns").Text(), R"(["x","y"])");
  ASSERT_EQ(mistakes.At("mistakes").Items().size(), 2u);
  for (const Json& one : mistakes.At("mistakes").Items()) {
    const bool first = one.At("sample").AsString() == "60";
    EXPECT_EQ(one.At("sample").AsString(), first ? "60" : "61");
    EXPECT_EQ(one.At("label").AsString(), first ? "no" : "yes");
    EXPECT_EQ(one.At("prediction").AsString(), first ? "yes" : "no");
    EXPECT_EQ(one.At("fields").Text(), first ? R"(["10","3"])" : R"(["0","3"])");
  }
  Succeed({"data", "info", "csv:train.csv", "--page", "rows.html"});
  const std::string page = Read("rows.html");
  EXPECT_NE(page.find("First rows of each class"), page.npos);
}

// Whether x is above 5 and the colour is not red, or neither.
std::string TextTable(int count) {
  std::string text = "colour;x;kind\n";
  for (int i = 0; i < count; ++i) {
    const bool red = i % 3 == 0, large = i % 7 > 3;
    text += fmt::format("{};{};{}\n",
                        i % 11 == 5  ? ""
                        : red        ? "red"
                        : i % 3 == 1 ? "blue"
                                     : "green",
                        i % 13 == 6 ? "?"
                        : large     ? "7,5"
                                    : "2,5",
                        large != red ? "yes" : "no");
  }
  return text;
}

TEST_F(PredictTest, ATableWithTextsAndHolesIsReadTheSameWayLater) {
  Write("t.csv", TextTable(400));
  const Words train = {"train", "--data", "csv:t.csv", "--epochs", "30", "--out"};
  const Outcome trained = Succeed(train + Words{"a"});
  EXPECT_NE(trained.err.find("column 1 ('colour'): 3"), std::string::npos) << trained.err;
  EXPECT_NE(trained.err.find("fields missing"), std::string::npos) << trained.err;
  EXPECT_GT(Number("a", "test_accuracy"), 0.8);  // guessing: a half
  const Json result = ParseJson(Succeed({"eval", "a", "--data", "csv:t.csv", "--json"}).out, "e");
  EXPECT_GT(result.At("test_accuracy").AsDouble(), 0.8);
  Write("ask.csv", "x,colour\n7.5,blue\n2.5,blue\n7.5,red\n,pink\n");
  const Outcome asked = Succeed({"predict", "a", "ask.csv", "--csv"});
  EXPECT_EQ(asked.out.find("file,record,class,no,yes\nask.csv,0,yes,"), 0u) << asked.out;
  EXPECT_NE(asked.out.find("\nask.csv,1,no,"), std::string::npos) << asked.out;
  EXPECT_NE(asked.out.find("\nask.csv,2,no,"), std::string::npos) << asked.out;
  EXPECT_NE(asked.err.find("'pink'"), std::string::npos) << asked.err;
  Write("t.csv", TextTable(399) + "violet;2,5;no\n");
  Refuse({"train", "--resume", "a", "--epochs", "31"}, 1, {"other texts"});
  Refuse(train + Words{"b", "--set", "data.missing=fail"}, 1, {"t.csv:", "data.missing"});
  Refuse(train + Words{"b", "--set", "data.categories=3"}, 1, {"'colour'", "data.categories"});
}

TEST_F(PredictTest, WhatMayBeWrongWithATableIsSaid) {
  Write("numbered.csv", Table("Id,x,y,kind", 30));
  const Words train = {"train", "--data", "csv:numbered.csv", "--model", "mlp", "--epochs", "1"};
  const auto warnings = [](const Outcome& outcome) {
    size_t count = 0;
    for (size_t at = 0; (at = outcome.err.find("--set data.id=Id", at)) != std::string::npos; ++at)
      ++count;
    return count;
  };
  EXPECT_EQ(warnings(Succeed(train + Words{"--out", "a"})), 1u);
  EXPECT_EQ(warnings(Succeed(train + Words{"--out", "b", "--ranks", "2", "--transport", "shm"})),
            1u);
  EXPECT_EQ(warnings(Succeed(train + Words{"--out", "c", "--set", "data.id=Id"})), 0u);
  Succeed({"train", "--epochs", "1", "--out", "iris"});  // knows no names of columns
  Write("flowers.csv", "sl,sw,pl,pw\n5.1,3.5,1.4,0.2\n");
  EXPECT_NE(Succeed({"predict", "iris", "flowers.csv"}).err.find("matched by position"),
            std::string::npos);
}

TEST_F(PredictTest, CsvWithAndWithoutLabels) {
  Succeed({"train", "--out", "a"});
  Write("plain.csv", "5.1,3.5,1.4,0.2\r\n6.3,3.3,6.0,2.5\r\n");
  Write("named.csv", "a,b,c,d,kind\n5.1,3.5,1.4,0.2,Iris-setosa\n6.3,3.3,6.0,2.5,Iris-virginica\n");
  const auto plain = Lines(Succeed({"predict", "a", "plain.csv", "--logits"}).out);
  const auto named = Lines(Succeed({"predict", "a", "named.csv", "--logits"}).out);
  ASSERT_EQ(plain.size(), 2u);
  ASSERT_EQ(named.size(), 2u);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(plain[i].At("logits").Text(), named[i].At("logits").Text());
    EXPECT_EQ(plain[i].At("logits").Items().size(), 3u);
    EXPECT_EQ(plain[i].At("record").AsInt(), i);
  }
  EXPECT_EQ(plain[0].At("class").AsString(), "Iris-setosa");
  EXPECT_EQ(plain[1].At("class").AsString(), "Iris-virginica");

  // Probabilities are the softmax of the logits.
  const auto shares = Lines(Succeed({"predict", "a", "plain.csv", "--json"}).out);
  double sum = 0;
  for (const Json& logit : plain[1].At("logits").Items()) sum += std::exp(logit.AsDouble());
  for (int c = 0; c < 3; ++c) {
    EXPECT_NEAR(shares[1].At("probabilities").Items()[c].AsDouble(),
                std::exp(plain[1].At("logits").Items()[c].AsDouble()) / sum, 1e-5);
  }
  const std::string text = Succeed({"predict", "a", "plain.csv", "named.csv", "--top", "1"}).out;
  EXPECT_EQ(Split(text, '\n').size(), 5u);  // four lines
  EXPECT_NE(text.find("Iris-virginica"), std::string::npos);
}

TEST_F(PredictTest, TheTopClassesInEveryForm) {
  Succeed({"train", "--out", "a"});
  Write("x.csv", "5.1,3.5,1.4,0.2\n6.3,3.3,6.0,2.5\n");
  const auto all = Lines(Succeed({"predict", "a", "x.csv", "--json"}).out);
  const auto top = Lines(Succeed({"predict", "a", "x.csv", "--json", "--top", "2"}).out);
  const auto rows = Split(Succeed({"predict", "a", "x.csv", "--csv", "--top", "2"}).out, '\n');
  EXPECT_EQ(rows[0], "file,record,class,probability,class 2,probability 2");
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(top[i].Find("probabilities"), nullptr);
    std::vector<double> shares;
    for (const Json& share : all[i].At("probabilities").Items()) {
      shares.push_back(share.AsDouble());
    }
    std::sort(shares.rbegin(), shares.rend());
    const auto& best = top[i].At("top").Items();
    ASSERT_EQ(best.size(), 2u);
    EXPECT_EQ(best[0].At("class").AsString(), all[i].At("class").AsString());
    const auto fields = Split(rows[i + 1], ',');
    ASSERT_EQ(fields.size(), 6u);
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_EQ(best[k].At("probability").AsDouble(), shares[k]);
      EXPECT_EQ(fields[2 + 2 * k], best[k].At("class").AsString());
      EXPECT_NEAR(std::stod(fields[3 + 2 * k]), shares[k], 1e-5);
    }
  }
  EXPECT_EQ(Lines(Succeed({"predict", "a", "x.csv", "--json", "--top", "9"}).out)[0]
                .At("top")
                .Items()
                .size(),
            3u);
  Refuse({"predict", "a", "x.csv", "--logits", "--top", "2"}, 2, {"--logits", "--json"});
}

TEST_F(PredictTest, FilesFromAList) {
  Succeed({"train", "--epochs", "1", "--out", "a"});
  Write("x.csv", "5.1,3.5,1.4,0.2\n6.3,3.3,6.0,2.5\n");
  Write("y y.csv", "6.3,3.3,6.0,2.5\n");
  const std::string expected = Succeed({"predict", "a", "x.csv", "y y.csv"}).out;
  Write("list", "x.csv\r\n\ny y.csv");
  EXPECT_EQ(Succeed({"predict", "a", "--files-from", "list"}).out, expected);
  const auto piped = [&](const std::string& list) {
    return Run({"predict", "a", "--files-from", "-"}, kTimeout,
               {"sh", "-c", "cat " + list + " | \"$@\"", "sh"});
  };
  EXPECT_EQ(piped("list").out, expected);
  Write("holes", "x.csv\nmissing.csv\ny y.csv\n");
  const Outcome holes = piped("holes");
  EXPECT_EQ(holes.exit_code, 1);
  EXPECT_EQ(holes.out, expected);
  EXPECT_NE(holes.err.find("missing.csv"), std::string::npos) << holes.err;
  EXPECT_NE(holes.err.find("1 of 3 files could not be read"), std::string::npos) << holes.err;
  Write("itself", "x.csv\n-\n");
  EXPECT_EQ(piped("itself").exit_code, 2);
  Refuse({"predict", "a", "--files-from", "nothing"}, 1, {"nothing"});
  Refuse({"predict", "a", "--files-from", "."}, 1, {"."});
  Refuse({"predict", "a", "x.csv", "--files-from", "list"}, 2, {"FILE"});
}

TEST_F(PredictTest, RecordsThatDoNotFit) {
  Succeed({"train", "--epochs", "1", "--out", "a"});
  Write("three.csv", "1,2,3\n");
  Write("words.csv", "1,2,x,4\n1,2,x,4\n");
  Write("empty.csv", "");
  Write("idx", Idx({1, 2, 2}, "abcd"));
  Refuse({"predict", "a", "three.csv"}, 1, {"three.csv", "3", "4"});
  Refuse({"predict", "a", "words.csv"}, 1, {"words.csv"});
  Refuse({"predict", "a", "empty.csv"}, 1, {"empty.csv"});
  Refuse({"predict", "a", "idx"}, 1, {"idx", "2 x 2 x 1", "1 x 1 x 4"});
  Refuse({"predict", "a", "nothing.csv"}, 1, {"nothing.csv"});
  Refuse({"predict", "a", "."}, 1, {"."});
  Refuse({"predict", "a"}, 2, {"FILE"});
  Refuse({"predict", "a", "three.csv", "--top", "0"}, 2, {"--top"});
}

TEST_F(PredictTest, AFullDiskIsNoFilesFault) {
  Succeed({"train", "--epochs", "1", "--out", "a"});
  Write("x.csv", "5.1,3.5,1.4,0.2\n");
  Running running({"predict", "a", "x.csv", "x.csv"}, At("."),
                  {"sh", "-c", "exec \"$@\" > /dev/full", "sh"});
  const Outcome outcome = running.Wait(kTimeout);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.err.find("cannot write the output"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("x.csv"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("could not be read"), std::string::npos) << outcome.err;
}

TEST_F(PredictTest, IdxPictures) {
  const Pictures train = Draw(90, 5, 1, false), test = Draw(30, 5, 1, false);
  Write("set/train-images-idx3-ubyte", Idx({90, 5, 4}, train.pixels));
  Write("set/train-labels-idx1-ubyte", Idx({90}, train.labels));
  Write("set/t10k-images-idx3-ubyte", Idx({30, 5, 4}, test.pixels));
  Write("set/t10k-labels-idx1-ubyte", Idx({30}, test.labels));
  Succeed({"train", "--data", "idx:set", "--model", "mlp:20-8-3", "--epochs", "20", "--out", "a"});
  EXPECT_EQ(Number("a", "test_accuracy"), 1);
  for (const std::string prefix : {"", "idx:"}) {
    const auto lines =
        Lines(Succeed({"predict", "a", prefix + "set/t10k-images-idx3-ubyte", "--logits"}).out);
    ASSERT_EQ(lines.size(), 30u);
    for (int i = 0; i < 30; ++i) {
      EXPECT_EQ(lines[i].At("class").AsString(), std::to_string(int(test.labels[i])));
    }
  }
  Write("cut", Idx({30, 5, 4}, test.pixels.substr(0, 500)));
  Refuse({"predict", "a", "cut"}, 1, {"cut"});
}

TEST_F(PredictTest, CifarRecords) {
  // 3073 bytes each: the label, then 32x32 of red, green and blue.
  const auto records = [](int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i) {
      const int label = i % 10;
      bytes += char(label);
      for (int c = 0; c < 3; ++c) {
        for (int p = 0; p < 1024; ++p) bytes += char(p / 102 == label ? 220 : (p + i) % 23);
      }
    }
    return bytes;
  };
  Write("c/data_batch_1.bin", records(60));
  Write("c/test_batch.bin", records(20));
  Succeed({"train", "--data", "cifar10:c", "--model", "mlp:3072-16-10", "--epochs", "15", "--lr",
           "0.01", "--out", "a"});
  EXPECT_EQ(Number("a", "test_accuracy"), 1);
  const auto lines = Lines(Succeed({"predict", "a", "cifar10:c/test_batch.bin", "--json"}).out);
  ASSERT_EQ(lines.size(), 20u);
  EXPECT_EQ(lines[3].At("class").AsString(), lines[13].At("class").AsString());
  EXPECT_NE(lines[3].At("class").AsString(), lines[4].At("class").AsString());
}

}  // namespace
}  // namespace trireme::whole
