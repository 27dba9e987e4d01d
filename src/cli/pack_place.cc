#include "cli/pack_place.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "base/error.h"
#include "base/files.h"
#include "data/pack.h"

namespace trireme {

bool IsNoPack(const std::string& path) {
  std::array<char, PackHead::kMagic.size()> begin{};
  std::ifstream file(path, std::ios::binary);
  return file && !(file.read(begin.data(), begin.size()) &&
                   std::string_view(begin.data(), begin.size()) == PackHead::kMagic);
}

std::string PackPlace(const std::string& given) {
  const size_t colon = Exists(given) ? given.npos : given.find(':');
  const std::string place = colon == given.npos ? given : given.substr(colon + 1);
  if (std::error_code ignored; std::filesystem::is_directory(place, ignored)) {
    throw Error(
        "{}: is a folder, not a pack; make a pack of class folders with: trireme data pack {} FILE",
        place, place);
  }
  if (IsNoPack(place)) {
    throw Error("{}: is not a pack; make one with: trireme data pack DIR FILE", place);
  }
  return place;
}

}  // namespace trireme
