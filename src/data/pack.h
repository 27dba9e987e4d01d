#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/options.h"
#include "data/pack_format.h"
#include "data/picture_source.h"
#include "data/source.h"

namespace trireme {

// A pack in mapped memory: its pages come when they are read and belong to no process, so packs
// larger than memory stream. Everything but the pictures is checked when it is opened. Immutable.
class Pack {
 public:
  explicit Pack(const std::string& path);
  ~Pack();
  Pack(const Pack&) = delete;
  Pack& operator=(const Pack&) = delete;

  const std::string& path() const { return path_; }
  const PackHead& head() const { return head_; }
  uint64_t bytes() const { return file_.size(); }
  const std::vector<std::string>& classes() const { return classes_; }

  PackEntry entry(int64_t index) const;
  std::span<const uint8_t> picture(int64_t index) const;
  std::string name(int64_t index) const;  // as it was called before; looks through the names

  // For reading one picture after another. Every message names the pack and the picture.
  std::unique_ptr<Decoder> Open(int64_t index) const;

  // What is wrong with a picture: its checksum, or also its decoding; "" if nothing.
  std::string CheckBytes(int64_t index) const;
  std::string Check(int64_t index) const;

 private:
  void ReadIndex();
  std::string Called(int64_t index) const;  // "FILE: image 17 (cat/1.jpg)"

  const std::string path_;
  std::span<const uint8_t> file_;
  PackHead head_;
  std::vector<std::string> classes_;
  size_t names_begin_ = 0;
};

struct PackReport {
  int64_t train = 0, validation = 0, test = 0;
  uint64_t bytes = 0;
  std::vector<std::string> left_out;
};

// Writes what OpenImages found, in the order of its parts, whole or not at all. `side`: decoded
// and resized so that the shorter side has so many pixels; 0: the files as they are.
PackReport WritePack(const std::string& folder, const DataOptions& options, int side,
                     const std::string& path);

// pack:FILE.
DataSet OpenPack(const std::string& path, const DataOptions& options,
                 std::span<const std::string> classes);

}  // namespace trireme
