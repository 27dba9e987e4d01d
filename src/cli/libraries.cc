#include "cli/libraries.h"

#include <fmt/format.h>
#include <hwy/highway.h>
#include <jpeglib.h>
#include <png.h>
#include <toml++/impl/version.h>
#include <zlib.h>

#include <asio/version.hpp>
#include <nlohmann/detail/abi_macros.hpp>

#define TRIREME_WORDS_OF(x) #x
#define TRIREME_WORDS(x) TRIREME_WORDS_OF(x)

namespace trireme {
namespace {

std::string Dotted(int major, int minor, int patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace

std::vector<Library> Libraries() {
  std::vector<Library> all = {
      {"fmt", Dotted(FMT_VERSION / 10000, FMT_VERSION / 100 % 100, FMT_VERSION % 100), "MIT",
       "https://github.com/fmtlib/fmt"},
      {"highway", Dotted(HWY_MAJOR, HWY_MINOR, HWY_PATCH), "BSD-3-Clause",
       "https://github.com/google/highway"},
      {"asio", Dotted(ASIO_VERSION / 100000, ASIO_VERSION / 100 % 1000, ASIO_VERSION % 100),
       "BSL-1.0", "https://think-async.com"},
      {"nlohmann-json",
       Dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR,
              NLOHMANN_JSON_VERSION_PATCH),
       "MIT", "https://github.com/nlohmann/json"},
      {"tomlplusplus", Dotted(TOML_LIB_MAJOR, TOML_LIB_MINOR, TOML_LIB_PATCH), "MIT",
       "https://github.com/marzer/tomlplusplus"},
      {"zlib", zlibVersion(), "Zlib", "https://zlib.net"},
      {"libpng", png_get_libpng_ver(nullptr), "libpng-2.0", "http://www.libpng.org"},
      {"libjpeg-turbo", TRIREME_WORDS(LIBJPEG_TURBO_VERSION), "IJG AND BSD-3-Clause",
       "https://libjpeg-turbo.org"},
  };
#ifdef _LIBCPP_VERSION
  all.push_back(
      {"llvm", Dotted(_LIBCPP_VERSION / 10000, _LIBCPP_VERSION / 100 % 100, _LIBCPP_VERSION % 100),
       "Apache-2.0 WITH LLVM-exception", "https://llvm.org"});
#endif
  return all;
}

}  // namespace trireme
