#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// A library that the program is made of: a row for each, with the version it was compiled with.
struct Library {
  std::string_view name;  // as in licenses/NAME.txt
  std::string version;
  std::string_view license;  // by its SPDX identifier
  std::string_view home;
};
std::vector<Library> Libraries();

// LICENSE (as "trireme") and the files of licenses/.
struct LicenseText {
  std::string_view name, text;
};
std::span<const LicenseText> LicenseTexts();

}  // namespace trireme
