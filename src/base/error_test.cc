#include "base/error.h"

#include <gtest/gtest.h>

namespace trireme {
namespace {

TEST(Error, KeepsItsSentenceAndWhatLayersAdd) {
  try {
    try {
      throw PeerLost("rank {} of {}", 2, 4);
    } catch (Error& e) {
      e.Add("in step {}", 17);
      throw;
    }
  } catch (const PeerLost& e) {
    EXPECT_STREQ(e.what(), "rank 2 of 4 (in step 17)");
  }
}

}  // namespace
}  // namespace trireme
