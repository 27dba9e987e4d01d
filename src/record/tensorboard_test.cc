#include "record/tensorboard.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <map>

namespace trireme {
namespace {

// ---- a reader of its own, strict where TensorBoard's is

uint64_t Fixed(std::string_view bytes, size_t size) {
  EXPECT_GE(bytes.size(), size);
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= uint64_t(uint8_t(bytes[i])) << (8 * i);
  return value;
}

uint32_t Unmasked(uint64_t masked) {
  const uint32_t rotated = uint32_t(masked) - 0xA282EAD8u;
  return (rotated >> 17) | (rotated << 15);
}

std::vector<std::string> Records(std::string_view file) {
  std::vector<std::string> records;
  while (!file.empty()) {
    const uint64_t size = Fixed(file, 8);
    EXPECT_EQ(Unmasked(Fixed(file.substr(8), 4)), Crc32c(file.substr(0, 8)));
    const std::string_view data = file.substr(12, size);
    EXPECT_EQ(data.size(), size);
    EXPECT_EQ(Unmasked(Fixed(file.substr(12 + size), 4)), Crc32c(data));
    records.emplace_back(data);
    file.remove_prefix(16 + size);
  }
  return records;
}

uint64_t Varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = uint8_t(bytes.at(0));
    bytes.remove_prefix(1);
    value |= uint64_t(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  ADD_FAILURE() << "a varint without end";
  return 0;
}

struct Field {
  int type = 0;
  uint64_t number = 0;
  std::string_view bytes;
};

std::multimap<int, Field> Fields(std::string_view message) {
  std::multimap<int, Field> fields;
  while (!message.empty()) {
    const uint64_t key = Varint(message);
    Field field{.type = int(key & 7)};
    size_t size = 0;
    if (field.type == 0) field.number = Varint(message);
    if (field.type == 1) field.number = Fixed(message, size = 8);
    if (field.type == 5) field.number = Fixed(message, size = 4);
    if (field.type == 2) {
      size = Varint(message);
      field.bytes = message.substr(0, size);
      EXPECT_EQ(field.bytes.size(), size);
    }
    message.remove_prefix(size);
    fields.emplace(int(key >> 3), field);
  }
  return fields;
}

std::map<std::string, float> ScalarsIn(const std::string& event) {
  std::map<std::string, float> scalars;
  const auto fields = Fields(event);
  for (const auto& [number, value] : Fields(fields.find(5)->second.bytes)) {
    EXPECT_EQ(number, 1);
    const auto entry = Fields(value.bytes);
    scalars[std::string(entry.find(1)->second.bytes)] =
        std::bit_cast<float>(uint32_t(entry.find(2)->second.number));
  }
  return scalars;
}

// ---- tests

TEST(TensorBoard, ChecksumHasItsKnownValues) {  // RFC 3720, B.4
  EXPECT_EQ(Crc32c(""), 0u);
  EXPECT_EQ(Crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(Crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
}

TEST(TensorBoard, FileHoldsWhatWasAdded) {
  TemporaryDirectory folder;
  std::string path;
  {
    TensorBoardWriter writer(folder / "tb", 0);
    path = writer.path();
    writer.Add(7, {{"loss/train", 0.25}, {"nan", NAN}});
    writer.Add(int64_t{1} << 40, {});
  }
  const auto records = Records(ReadFile(path));
  ASSERT_EQ(records.size(), 3u);
  EXPECT_EQ(Fields(records[0]).find(3)->second.bytes, "brain.Event:2");
  EXPECT_GT(std::bit_cast<double>(Fields(records[1]).find(1)->second.number), 1.6e9);
  EXPECT_EQ(Fields(records[1]).find(2)->second.number, 7u);
  const auto scalars = ScalarsIn(records[1]);
  EXPECT_EQ(scalars.at("loss/train"), 0.25f);
  EXPECT_TRUE(std::isnan(scalars.at("nan")));
  EXPECT_EQ(Fields(records[2]).find(2)->second.number, uint64_t{1} << 40);
}

TEST(TensorBoard, AResumedRunBeginsALaterFileAndVoidsWhatComesAgain) {
  TemporaryDirectory folder;
  const std::string first = TensorBoardWriter(folder.path(), 0, 1000).path();
  const std::string second = TensorBoardWriter(folder.path(), 40, 1000).path();
  EXPECT_LT(first, second);
  EXPECT_EQ(Records(ReadFile(first)).size(), 1u);
  const auto records = Records(ReadFile(second));
  ASSERT_EQ(records.size(), 2u);
  const auto restart = Fields(records[1]);
  EXPECT_EQ(restart.find(2)->second.number, 41u);
  EXPECT_EQ(Fields(restart.find(7)->second.bytes).find(1)->second.number, 1u);
}

TEST(TensorBoard, WhatWasNotMeasuredIsNotThere) {
  EpochRecord record;
  record.train_loss = 1;
  for (const auto& [tag, value] : ScalarsOf(record)) EXPECT_NE(tag, "loss/test") << value;
}

}  // namespace
}  // namespace trireme
