#include "image/decoder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/error.h"
#include "image/jpeg.h"
#include "image/png.h"

namespace trireme {
namespace {

constexpr std::string_view kJpeg = "\xff\xd8\xff", kPng = "\x89PNG\r\n\x1a\n";

bool StartsWith(std::span<const uint8_t> bytes, std::string_view signature) {
  return bytes.size() >= signature.size() &&
         std::equal(signature.begin(), signature.end(), bytes.begin(),
                    [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; });
}

}  // namespace

bool IsPicture(std::span<const uint8_t> bytes) {
  return StartsWith(bytes, kJpeg) || StartsWith(bytes, kPng);
}

std::unique_ptr<Decoder> OpenPicture(std::span<const uint8_t> bytes, const std::string& name) {
  if (bytes.empty()) throw Error("{}: the file is empty", name);
  if (StartsWith(bytes, kJpeg)) return OpenJpeg(bytes, name);
  if (StartsWith(bytes, kPng)) return OpenPng(bytes, name);
  throw Error("{}: is neither JPEG nor PNG", name);
}

bool HasPictureName(std::string_view path) {
  constexpr std::array<std::string_view, 3> kEndings = {".jpg", ".jpeg", ".png"};
  return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
    return path.size() > ending.size() &&
           std::equal(ending.begin(), ending.end(), path.end() - std::ssize(ending),
                      [](char a, char b) { return a == std::tolower(static_cast<uint8_t>(b)); });
  });
}

void CheckPictureSize(int64_t width, int64_t height, const std::string& name) {
  if (width < 1 || height < 1) throw Error("{}: has {} x {} pixels", name, width, height);
  if (width > kMaxPixels || height > kMaxPixels / width) {
    throw Error("{}: has {} x {} pixels, more than {}", name, width, height, kMaxPixels);
  }
}

}  // namespace trireme
