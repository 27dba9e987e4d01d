// Libraries that are opened at run time: needs no card.
#include "engine/cuda/opened.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/cuda/group.h"

namespace trireme::cuda {
namespace {

template <class F>
std::string ErrorOf(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(OpenedLibrary, SaysWhoNeedsWhatAndHowToGetIt) {
  const std::string error = ErrorOf([] {
    OpenedLibrary({"a test", "Nothing 7", "libnothing.so.7", "install nothing7"});
  });
  EXPECT_EQ(error.find("a test needs Nothing 7, which could not be opened (libnothing.so.7: "), 0u)
      << error;
  EXPECT_NE(error.find("): install nothing7, or name its folder in LD_LIBRARY_PATH"), error.npos)
      << error;
}

TEST(OpenedLibrary, SaysWhichFunctionIsMissing) {
  const OpenedLibrary c({"a test", "C", "libc.so.6", "install another C"});
  int (*found)(int) = nullptr;
  c.Find("abs", found);
  EXPECT_EQ(found(-3), 3);
  EXPECT_EQ(ErrorOf([&] { c.Find("ncclAbs", found); }),
            "a test needs a newer C: libc.so.6 has no ncclAbs; install another C");
}

// In one line, for doctor.
TEST(OpenedLibrary, NcclHasAVersionOrIsMissing) {
  const std::string text = NcclText();
  EXPECT_TRUE(text.starts_with("NCCL 2.") ||
              text.find("no NCCL: a sum between cards needs") != text.npos)
      << text;
  EXPECT_EQ(text.find('\n'), text.npos) << text;
}

}  // namespace
}  // namespace trireme::cuda
