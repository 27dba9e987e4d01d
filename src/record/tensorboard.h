#pragma once
#include <cstdint>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "record/metrics.h"

namespace trireme {

// CRC-32C (Castagnoli), as iSCSI and TFRecord use it.
uint32_t Crc32c(std::string_view bytes);

// A record of a TFRecord file: length, its masked checksum, the bytes, their masked checksum.
std::string TfRecord(std::string_view bytes);

using Scalars = std::vector<std::pair<std::string, double>>;  // tag, value

// Event messages of TensorBoard, as protocol buffers.
std::string VersionEvent(double wall_time);
// A run goes on here: what an older file holds of this step and later ones is no longer true.
std::string RestartEvent(double wall_time, int64_t step);
std::string ScalarsEvent(double wall_time, int64_t step, const Scalars& scalars);

Scalars ScalarsOf(const EpochRecord& record);
Scalars ScalarsOf(const StepRecord& record);

// FOLDER/events.out.tfevents.TIME.HOST, a file per life of a run, later ones with a later time in
// their names: TensorBoard reads them in that order. What Add wrote is out of the process's hands.
// One thread.
class TensorBoardWriter {
 public:
  // `done`: steps that a resumed run has behind it; 0 for a new one.
  TensorBoardWriter(const std::string& folder, int64_t done, std::time_t now = std::time(nullptr));
  void Add(int64_t step, const Scalars& scalars);
  const std::string& path() const { return file_.path(); }

 private:
  OutputFile file_;
};

}  // namespace trireme
