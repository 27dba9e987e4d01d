// OpenRecords: files of samples to classify.
#include <string_view>
#include <utility>

#include "base/error.h"
#include "data/bytes.h"
#include "data/cifar.h"
#include "data/csv.h"
#include "data/idx.h"
#include "data/images.h"
#include "data/sources.h"
#include "image/decoder.h"

namespace trireme {
namespace {

enum class Format { kCsv, kIdx, kCifar, kPicture };

struct NamedFormat {
  std::string_view prefix;
  Format format;
};

constexpr NamedFormat kFormats[] = {{"csv:", Format::kCsv},
                                    {"idx:", Format::kIdx},
                                    {"cifar10:", Format::kCifar},
                                    {"image:", Format::kPicture}};

Format SeeFormat(const std::string& path) {
  if (path.ends_with(".csv") || path.ends_with(".csv.gz")) return Format::kCsv;
  if (path.ends_with(".bin") || path.ends_with(".bin.gz")) return Format::kCifar;
  if (HasPictureName(path)) return Format::kPicture;
  const std::vector<uint8_t> bytes = ReadBytes(path);
  if (IsPicture(bytes)) return Format::kPicture;
  return LooksLikeIdx(bytes) ? Format::kIdx : Format::kCsv;
}

Records Open(const std::string& path, Format format, const SampleShape& shape,
             const KnownData& known, const DataOptions& options) {
  switch (format) {
    case Format::kIdx:
      return {OpenIdxPictures(path), false};
    case Format::kCifar:
      return {OpenCifarRecords({path}), true};
    case Format::kPicture: {
      if (shape.height != shape.width || shape.channels != 3) {
        throw Error("{}: is an image, but the model takes {} x {} x {}", path, shape.height,
                    shape.width, shape.channels);
      }
      DataOptions sized = options;
      sized.size = shape.height;
      return {OpenImageFile(path, sized), false};
    }
    case Format::kCsv:
      break;
  }
  CsvTable table = ReadCsvRecords(path, MakeCsvRequest(options, known), shape);
  return {std::move(table.rows), table.labelled, std::move(table.notes)};
}

}  // namespace

Records OpenRecords(const std::string& spec, const SampleShape& shape, const KnownData& known,
                    const DataOptions& options) {
  std::string path = spec;
  const NamedFormat* named = nullptr;
  for (const NamedFormat& candidate : kFormats) {
    if (!spec.starts_with(candidate.prefix)) continue;
    named = &candidate;
    path = spec.substr(candidate.prefix.size());
  }
  const Format format = named != nullptr ? named->format : SeeFormat(path);
  Records records = Open(path, format, shape, known, options);
  const SampleShape& found = records.samples->shape();
  if (found != shape) {
    throw Error("{}: the samples are {} x {} x {}, but the model takes {} x {} x {}", path,
                found.height, found.width, found.channels, shape.height, shape.width,
                shape.channels);
  }
  const bool classes = known.task != Task::kRegression;
  for (int64_t i = 0; classes && i < records.samples->size(); ++i) {
    if (records.samples->label(i) >= static_cast<int64_t>(known.classes.size())) {
      throw Error("{}: label {} of record {} is out of range; the model has {} classes", path,
                  records.samples->label(i), i, known.classes.size());
    }
  }
  return records;
}

}  // namespace trireme
