#include "record/tensorboard.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/machine.h"
#include "base/protobuf.h"
#include "base/text.h"

namespace trireme {
namespace {

constexpr std::string_view kEventPrefix = "events.out.tfevents.";

constexpr std::array<uint32_t, 256> MakeCrcTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (crc & 1 ? 0x82F63B78u : 0);
    table[i] = crc;
  }
  return table;
}

uint32_t MaskedCrc(std::string_view bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

template <class T>
void PutFixed(std::string& out, T value) {
  for (size_t i = 0; i < sizeof(T); ++i) out += char(uint8_t(value >> (8 * i)));
}

// message Event { double wall_time = 1; int64 step = 2; string file_version = 3;
//                 Summary summary = 5; SessionLog session_log = 7; }
ProtoMessage Event(double wall_time, int64_t step) {
  return std::move(ProtoMessage().Double(1, wall_time).Int(2, step));
}

double WallTime() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// As a part of a file's name.
std::string HostWord() {
  std::string name = HostName();
  for (char& c : name) {
    if (!std::isalnum(uint8_t(c)) && c != '-') c = '-';
  }
  return name.empty() ? "host" : name;
}

// Later than every file that is there: a run may be resumed within the second.
std::string NewEventFile(const std::string& folder, std::time_t now) {
  MakeDirectories(folder);
  int64_t time = now;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kEventPrefix)) continue;
    const std::string rest = name.substr(kEventPrefix.size());
    const auto written = ParseNumber<int64_t>(rest.substr(0, rest.find('.')));
    if (written && *written < now + 1'000'000) time = std::max(time, *written + 1);
  }
  return fmt::format("{}/{}{:010}.{}", folder, kEventPrefix, time, HostWord());
}

void AddTimes(Scalars& scalars, const StepTimes& times) {
  scalars.emplace_back("time/data", times.data);
  scalars.emplace_back("time/forward", times.forward);
  scalars.emplace_back("time/backward", times.backward);
  scalars.emplace_back("time/communication", times.communication);
  scalars.emplace_back("time/update", times.update);
}

}  // namespace

uint32_t Crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = MakeCrcTable();
  uint32_t crc = 0xFFFFFFFFu;
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ uint8_t(c)) & 0xFF];
  return ~crc;
}

std::string TfRecord(std::string_view bytes) {
  std::string record;
  PutFixed(record, uint64_t(bytes.size()));
  PutFixed(record, MaskedCrc(record));
  record += bytes;
  PutFixed(record, MaskedCrc(bytes));
  return record;
}

std::string VersionEvent(double wall_time) {
  return Event(wall_time, 0).Bytes(3, "brain.Event:2").bytes();
}

std::string RestartEvent(double wall_time, int64_t step) {
  const ProtoMessage log = std::move(ProtoMessage().Int(1, 1));  // SessionLog.status = START
  return Event(wall_time, step).Message(7, log).bytes();
}

std::string ScalarsEvent(double wall_time, int64_t step, const Scalars& scalars) {
  ProtoMessage summary;
  for (const auto& [tag, value] : scalars) {
    // message Value { string tag = 1; float simple_value = 2; }
    summary.Message(1, ProtoMessage().Bytes(1, tag).Float(2, float(value)));
  }
  return Event(wall_time, step).Message(5, summary).bytes();
}

Scalars ScalarsOf(const EpochRecord& record) {
  Scalars scalars;
  const auto add = [&](const char* tag, const std::optional<double>& value) {
    if (value) scalars.emplace_back(tag, *value);
  };
  add("loss/train", record.train_loss);
  add("loss/test", record.test_loss);
  add("loss/validation", record.validation_loss);
  add("accuracy/train", record.train_accuracy);
  add("accuracy/test", record.test_accuracy);
  add("accuracy/validation", record.validation_accuracy);
  add("accuracy/top5", record.test_top5);
  if (record.test_numbers) {
    add("rmse/test", record.test_numbers->rmse);
    add("mae/test", record.test_numbers->mae);
    add("r2/test", record.test_numbers->r2);
  }
  if (record.validation_numbers) add("rmse/validation", record.validation_numbers->rmse);
  add("epoch/learning_rate", record.lr);
  add("epoch/loss_scale", record.loss_scale);
  add("epoch/samples_per_second", record.samples_per_second);
  add("epoch/seconds", record.seconds);
  AddTimes(scalars, record.times);
  return scalars;
}

Scalars ScalarsOf(const StepRecord& record) {
  return {{"step/loss", record.train_loss},
          {"step/learning_rate", record.lr},
          {"step/samples_per_second", record.samples_per_second}};
}

TensorBoardWriter::TensorBoardWriter(const std::string& folder, int64_t done, std::time_t now)
    : file_(NewEventFile(folder, now)) {
  file_.Write(TfRecord(VersionEvent(WallTime())));
  if (done > 0) file_.Write(TfRecord(RestartEvent(WallTime(), done + 1)));
}

void TensorBoardWriter::Add(int64_t step, const Scalars& scalars) {
  file_.Write(TfRecord(ScalarsEvent(WallTime(), step, scalars)));
}

}  // namespace trireme
