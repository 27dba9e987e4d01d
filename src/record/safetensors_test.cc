#include "record/safetensors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <random>

#include "base/error.h"

namespace trireme {
namespace {

std::string File(const std::string& header, const std::string& data) {
  const uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + data;
}

template <class T>
std::string Bytes(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

class SafetensorsTest : public testing::Test {
 protected:
  std::vector<float> ReadAll(const SafetensorsReader& file, std::string_view name) {
    const TensorInfo* tensor = file.Find(name);
    if (tensor == nullptr) return {};
    std::vector<float> values(tensor->count);
    file.Read(*tensor, values);
    return values;
  }

  // What is said about a file with this content; "fine" if it is accepted and readable.
  std::string Verdict(const std::string& content) {
    std::filesystem::remove(path_);  // some file systems sync a file that is emptied and rewritten
    OutputFile out(path_);
    out.Write(content);
    out.Close();
    try {
      const SafetensorsReader file(path_);
      for (const TensorInfo& tensor : file.tensors()) ReadAll(file, tensor.name);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(path_), std::string::npos) << error.what();
      return error.what();
    }
    return "fine";
  }

  TemporaryDirectory folder_;
  std::string path_ = folder_ / "a.safetensors";
};

// 128 is how a pickle begins, with which PyTorch once wrote its files.
TEST_F(SafetensorsTest, HeadersMayHaveAnyLength) {
  for (size_t length = 120; length < 1000; length += 8) {
    std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
    header.resize(length, ' ');
    EXPECT_EQ(Verdict(File(header, "1234")), "fine") << length;
  }
}

TEST_F(SafetensorsTest, TensorsComeBackAsWritten) {
  const std::vector<float> a = {1.5f, -0.0f, NAN, INFINITY, 1e-42f, 3};
  SafetensorsWriter writer(path_, {{"format", "pt"}, {"name", "caf\xc3\xa9 \"x\""}});
  writer.Add("layer1.0.weight", std::vector<int64_t>{2, 3}, a);
  writer.Add("scalar", {}, std::vector<float>{7});
  writer.Add("empty", std::vector<int64_t>{0, 5}, {});
  EXPECT_THROW(writer.Add("scalar", {}, std::vector<float>{7}), Error);
  writer.Finish();

  const SafetensorsReader file(path_);
  ASSERT_EQ(file.tensors().size(), 3u);
  EXPECT_EQ(file.tensors()[0].shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(Bytes(ReadAll(file, "layer1.0.weight")), Bytes(a));
  EXPECT_EQ(ReadAll(file, "scalar"), std::vector<float>{7});
  EXPECT_TRUE(file.Find("empty") != nullptr && ReadAll(file, "empty").empty());
  EXPECT_EQ(file.Find("layer2"), nullptr);
  EXPECT_EQ(file.metadata().at("name"), "caf\xc3\xa9 \"x\"");
  EXPECT_EQ(InputFile(path_).size(), writer.bytes());
}

TEST_F(SafetensorsTest, AHeaderLongerThanItsRoomMovesTheData) {
  SafetensorsWriter writer(path_);
  std::vector<float> values(10007);
  for (int t = 0; t < 300; ++t) {
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(t * 31 + i);
    writer.Add("tensor." + std::to_string(t), std::vector<int64_t>{10007}, values);
  }
  writer.Finish();
  const SafetensorsReader file(path_);
  ASSERT_EQ(file.tensors().size(), 300u);
  EXPECT_EQ(file.tensors()[0].begin % 8, 0u);
  for (int t = 0; t < 300; ++t) {
    const auto back = ReadAll(file, "tensor." + std::to_string(t));
    for (size_t i = 0; i < back.size(); ++i) ASSERT_EQ(back[i], static_cast<float>(t * 31 + i));
  }
}

TEST_F(SafetensorsTest, OtherTypesBecomeFloatOrAreListedOnly) {
  const std::string data = Bytes<double>({1.25, -1e300}) + Bytes<int64_t>({42}) +
                           Bytes<uint16_t>({0x3c00, 0xc000, 0x0001, 0x7c00, 0x8000, 0x03ff}) +
                           Bytes<uint16_t>({0x3f80, 0xc020});
  ASSERT_EQ(
      Verdict(File(R"({"d":{"dtype":"F64","shape":[2],"data_offsets":[0,16]},)"
                   R"("h":{"dtype":"F16","shape":[6],"data_offsets":[24,36]},)"
                   R"("b":{"dtype":"BF16","shape":[2],"data_offsets":[36,40]},)"
                   R"("num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[16,24]}})",
                   data)),
      path_ + ": tensor \"num_batches_tracked\" has type I64; expected F32, F64, F16 or BF16");
  const SafetensorsReader file(path_);
  EXPECT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(ReadAll(file, "d"), (std::vector<float>{1.25f, -INFINITY}));
  EXPECT_EQ(ReadAll(file, "h"),
            (std::vector<float>{1, -2, 0x1p-24f, INFINITY, 0, 1023 * 0x1p-24f}));
  EXPECT_TRUE(std::signbit(ReadAll(file, "h")[4]));
  EXPECT_EQ(ReadAll(file, "b"), (std::vector<float>{1, -2.5f}));
}

TEST_F(SafetensorsTest, HostileHeadersAreRefusedWithAReason) {
  const auto one = [](const std::string& shape, const std::string& offsets,
                      const std::string& type = "F32") {
    return R"({"a":{"dtype":")" + type + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets +
           "}}";
  };
  const std::string four(4, 'x'), eight(8, 'x');
  const std::string entry = R"({"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  const std::string next = R"({"dtype":"F32","shape":[1],"data_offsets":[4,8]})";
  std::string absurd = File("{}", "");
  std::memset(absurd.data(), 0xff, 8);
  std::string beyond = File("{}", "");
  beyond[0] = 3;
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "has 0 bytes"},
      {"short", "has 5 bytes"},
      {absurd, "header of 18446744073709551615 bytes"},
      {beyond, "header of 3 bytes"},
      {File("", ""), "not JSON"},
      {File("[]", ""), "expected an object"},
      {File("{} x", ""), "not JSON"},
      {File(std::string(50000, '['), ""), "nested more than"},
      {File("{\"\xff\":1}", ""), "UTF-8"},
      {File("{\"a\":" + entry + ",\"a\":" + next + "}", eight), "twice"},
      {File("{\"a\":1}", ""), "expected an object"},
      {File("{\"a\":{}}", ""), "\"dtype\" is missing"},
      {File(one("[1]", "[0,4]", "F99"), four), "F99"},
      {File(one("1", "[0,4]"), four), "expected an array"},
      {File(one("[1.5]", "[0,4]"), four), "expected an integer"},
      {File(one("[-1]", "[0,4]"), four), "-1 is negative"},
      {File(one("[\"1\"]", "[0,4]"), four), "expected an integer"},
      {File(one("[4294967296,4294967296]", "[0,4]"), four), "too large"},
      {File(one("[4611686018427387904]", "[0,0]"), ""), "too large"},
      {File(one("[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]"), four), "17 dimensions"},
      {File(one("[18446744073709551615]", "[0,4]"), four), "expected an integer"},
      {File(one("[1]", "[0]"), four), "1 numbers"},
      {File(one("[1]", "[4,0]"), four), "outside"},
      {File(one("[1]", "[0,8]"), four), "outside"},
      {File(one("[1]", "[-4,0]"), four), "negative"},
      {File(one("[2]", "[0,4]"), four), "needs 8 bytes"},
      {File(one("[1]", "[0,4]"), eight), "4 bytes after"},
      {File(one("[1]", "[4,8]"), eight), "unused bytes"},
      {File("{\"a\":" + entry + ",\"b\":" + entry + "}", four), "overlaps"},
      {File("{\"__metadata__\":{\"a\":1}}", ""), "expected a string"},
      {File("{\"__metadata__\":3}", ""), "expected an object"},
  };
  for (const auto& [content, reason] : cases) {
    const std::string verdict = Verdict(content);
    EXPECT_NE(verdict.find(reason), std::string::npos) << reason << " / " << verdict;
  }
  EXPECT_EQ(Verdict(File("{\"b\":" + next + ",\"a\":" + entry + "}", eight)), "fine");
  EXPECT_EQ(Verdict(File("{}", "")), "fine");
}

TEST_F(SafetensorsTest, MutatedFilesAreReadOrRefused) {
  {
    SafetensorsWriter writer(path_, {{"format", "pt"}});
    writer.Add("conv.weight", std::vector<int64_t>{2, 3, 1, 1}, std::vector<float>(6, 1.0f));
    writer.Add("conv.bias", std::vector<int64_t>{2}, std::vector<float>(2, 2.0f));
    writer.Finish();
  }
  std::string original = ReadFile(path_);
  // The padding would swallow most mutations.
  original = File(original.substr(8, original.find("}}") + 2 - 8), original.substr(4096));
  ASSERT_EQ(Verdict(original), "fine");

  std::mt19937 random(1);
  const std::string alphabet = "0123456789{}[]\",:-eE.\\ \xff" + std::string(1, '\0');
  int accepted = 0, refused = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string content = original;
    for (int times = 1 + static_cast<int>(random() % 3); times > 0 && !content.empty(); --times) {
      const size_t at = random() % content.size();
      switch (random() % 6) {
        case 0:
          content[at] = static_cast<char>(random());
          break;
        case 1:
          content[at] = alphabet[random() % alphabet.size()];
          break;
        case 2:
          content.erase(at, 1 + random() % 8);
          break;
        case 3:
          content.insert(at, 1, alphabet[random() % alphabet.size()]);
          break;
        case 4:
          content.resize(at);
          break;
        case 5:
          content.insert(at, content.substr(random() % content.size(), random() % 40));
          break;
      }
      // Half of the time the length is right, so that what lies behind it is reached.
      if (random() % 2 == 0 && content.size() > 8) {
        const size_t end = content.find("}}");
        const uint64_t length = end == std::string::npos ? content.size() - 8 : end + 2 - 8;
        if (length < content.size()) std::memcpy(content.data(), &length, 8);
      }
    }
    ++(Verdict(content) == "fine" ? accepted : refused);
  }
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace trireme
