#include "data/own_size.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "data/images.h"
#include "data/pack.h"
#include "data/picture_source.h"

namespace trireme {
namespace {

constexpr int kSmall = 64;         // pixels
constexpr int64_t kLookedAt = 64;  // pictures, evenly chosen
constexpr int kStep = 4;           // sizes that differ are rounded up to a multiple of it

int SideOf(const PictureSource& pictures) {
  const auto reader = pictures.NewReader();
  const int64_t count = std::min(kLookedAt, pictures.size());
  int least = std::numeric_limits<int>::max(), most = 0;
  for (int64_t i = 0; i < count; ++i) {
    reader->Fetch(i * pictures.size() / count);
    const PictureSize size = reader->Open().size();
    if (std::max(size.width, size.height) > kSmall) return 0;
    const int side = std::min(size.width, size.height);
    least = std::min(least, side);
    most = std::max(most, side);
  }
  return least == most ? most : (most + kStep - 1) / kStep * kStep;
}

}  // namespace

int FindOwnSize(const DataOptions& options) {
  DataOptions look = options;
  look.on_error = "fail";  // trying all files takes its time
  const auto opened = [&](const std::string& word) { return options.source.starts_with(word); };
  try {
    DataSet data;
    if (opened("images:")) data = OpenImages(options.source.substr(7), look, {});
    if (opened("pack:")) data = OpenPack(options.source.substr(5), look, {});
    return data.train ? SideOf(static_cast<const PictureSource&>(*data.train)) : 0;
  } catch (const Error&) {  // told when they are opened to train
    return 0;
  }
}

}  // namespace trireme
