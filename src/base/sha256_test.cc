#include "base/sha256.h"

#include <gtest/gtest.h>

#include <string>

#include "base/files.h"

namespace trireme {
namespace {

TEST(Sha256, GivesTheValuesOfTheStandard) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Sha256Hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(Sha256Hex("abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
                      "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu"),
            "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1");
  EXPECT_EQ(Sha256Hex(std::string(1000000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, DoesNotDependOnThePieces) {
  std::string text(1000, '\0');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * i + 3);
  for (const size_t length : {55u, 56u, 57u, 63u, 64u, 65u, 119u, 120u, 128u, 1000u}) {
    const std::string whole = Sha256Hex(text.substr(0, length));
    for (const size_t piece : {1u, 7u, 63u, 64u, 65u, 200u}) {
      Sha256 hash;
      for (size_t at = 0; at < length; at += piece) {
        hash.Add(text.data() + at, std::min(piece, length - at));
        hash.Hex();  // looking does not disturb
      }
      EXPECT_EQ(hash.Hex(), whole) << length << " in pieces of " << piece;
    }
  }
}

TEST(Sha256, OfAFileIsThatOfItsContent) {
  const TemporaryDirectory folder;
  const std::string text(700001, 'q');
  ReplaceFile(folder / "a", text);
  ReplaceFile(folder / "empty", "");
  EXPECT_EQ(Sha256OfFile(folder / "a"), Sha256Hex(text));
  EXPECT_EQ(Sha256OfFile(folder / "empty"), Sha256Hex(""));
}

}  // namespace
}  // namespace trireme
