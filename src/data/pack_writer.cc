// WritePack: class folders become one file.
#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files.h"
#include "data/images.h"
#include "data/pack.h"
#include "image/renderer.h"

namespace trireme {
namespace {

class Writer {
 public:
  Writer(OutputFile& file, int side) : file_(file), side_(side) {
    if (!file_.CanWriteAt()) {
      throw Error("{}: a pack needs a file, because its header is written last", file_.path());
    }
    file_.Write(PackHead().Bytes());
    place_ = PackHead::kBytes;
  }

  void Add(const FileSource& source, int64_t index) {
    const std::string path = source.path(index);
    const std::string bytes = ReadFile(path);
    const std::span<const uint8_t> file(reinterpret_cast<const uint8_t*>(bytes.data()),
                                        bytes.size());
    const auto picture = OpenPicture(file, path);
    PackEntry entry{.begin = place_, .label = source.label(index)};
    if (side_ == 0) {
      picture->Verify();
      Append(entry, file);
    } else {
      AppendPixels(*picture, entry);
    }
    AddText(names_, std::string(source.name(index)));
  }

  uint64_t Finish(PackHead head, const std::vector<std::string>& classes) {
    std::string index = std::move(entries_);
    for (const std::string& name : classes) AddText(index, name);
    index += names_;
    file_.Write(index);
    head.kind = side_ == 0 ? PackKind::kFiles : PackKind::kPixels;
    head.side = static_cast<uint32_t>(side_);
    head.classes = static_cast<uint32_t>(classes.size());
    head.index_begin = place_;
    head.index_bytes = index.size();
    head.index_crc = Crc({reinterpret_cast<const uint8_t*>(index.data()), index.size()});
    const std::string bytes = head.Bytes();
    file_.WriteAt(0, bytes.data(), bytes.size());
    return place_ + index.size();
  }

 private:
  void AppendPixels(Decoder& picture, PackEntry& entry) {
    const PictureSize size = picture.size();
    const double scale = double(side_) / std::min(size.width, size.height);
    const PictureSize now = {std::max(1, int(std::lround(size.width * scale))),
                             std::max(1, int(std::lround(size.height * scale)))};
    CheckPictureSize(now.width, now.height, "the resized image");
    pixels_.resize(size_t(3) * now.width * now.height);
    renderer_.Draw(picture, {{0, 0, size.width, size.height}}, now, pixels_.data());
    entry.width = static_cast<uint32_t>(now.width);
    entry.height = static_cast<uint32_t>(now.height);
    Append(entry, pixels_);
  }

  void Append(PackEntry& entry, std::span<const uint8_t> bytes) {
    entry.bytes = bytes.size();
    entry.crc = Crc(bytes);
    file_.Write(bytes.data(), bytes.size());
    place_ += bytes.size();
    entries_ += entry.Bytes();
  }

  static void AddText(std::string& out, const std::string& text) {
    const auto length = static_cast<uint32_t>(text.size());
    for (int shift = 0; shift < 32; shift += 8) out.push_back(char(length >> shift & 0xff));
    out += text;
  }

  OutputFile& file_;
  const int side_;
  uint64_t place_ = 0;
  std::string entries_, names_;
  Renderer renderer_;
  std::vector<uint8_t> pixels_;
};

}  // namespace

PackReport WritePack(const std::string& folder, const DataOptions& options, int side,
                     const std::string& path) {
  const DataSet data = OpenImages(folder, options, {});
  PackReport report{.train = data.train->size(),
                    .validation = data.validation ? data.validation->size() : 0,
                    .test = data.test ? data.test->size() : 0,
                    .left_out = data.left_out};
  Replacement replacement(path);
  Writer writer(replacement.file(), side);
  for (const Source* part : {data.train.get(), data.validation.get(), data.test.get()}) {
    for (int64_t i = 0; part != nullptr && i < part->size(); ++i) {
      writer.Add(static_cast<const FileSource&>(*part), i);
    }
  }
  PackHead head;
  head.train = static_cast<uint64_t>(report.train);
  head.validation = static_cast<uint64_t>(report.validation);
  head.test = static_cast<uint64_t>(report.test);
  report.bytes = writer.Finish(head, data.classes);
  replacement.Commit();
  return report;
}

}  // namespace trireme
