#include "data/get/get.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/files.h"
#include "base/sha256.h"
#include "data/get/mirror_server.h"
#include "data/get/untar.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

std::string Gzip(const std::string& bytes) {
  std::string packed(bytes.size() + 1024, '\0');
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = uInt(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = uInt(packed.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// One entry of a tar archive.
std::string Entry(const std::string& name, char type, const std::string& content = "") {
  std::string block(512, '\0');
  block.replace(0, name.size(), name);
  block.replace(124, 11, fmt::format("{:011o}", content.size()));
  block.replace(148, 8, "        ");
  block[156] = type;
  block.replace(257, 6, std::string("ustar\0", 6));
  unsigned sum = 0;
  for (const char c : block) sum += static_cast<unsigned char>(c);
  block.replace(148, 7, fmt::format("{:06o}", sum) + std::string(1, '\0'));
  std::string padded = content;
  padded.resize((content.size() + 511) / 512 * 512);
  return block + padded;
}
const std::string kEnd(1024, '\0');

// Not to be packed much, so that it arrives in pieces.
std::string Noise(size_t bytes) {
  std::string text(bytes, '\0');
  uint32_t state = 1;
  for (char& c : text) c = char((state = state * 1664525 + 1013904223) >> 24);
  return text;
}

const std::string kContent = Noise(300000);
const std::string kPacked = Gzip(kContent);
const std::string kPackedSum = Sha256Hex(kPacked), kContentSum = Sha256Hex(kContent);

class GetTest : public testing::Test {
 protected:
  GetTest() {
    for (const char* name :
         {"http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"}) {
      unsetenv(name);
    }
    needs_.folder = home_ / "set";
    const char* const path = std::getenv("PATH");
    needs_.tool = FindDownloadTool(path ? path : "");
    needs_.say = [&](const std::string& words) { said_ += words + "\n"; };
  }

  // One .gz, from these mirrors.
  bool Get(const std::vector<std::string>& mirrors) {
    const OfferedFile files[] = {{"a.gz", int64_t(kPacked.size()), kPackedSum, kContentSum}};
    return GetFiles(files, mirrors);
  }
  bool GetFiles(std::span<const OfferedFile> files, const std::vector<std::string>& mirrors,
                std::string_view inside = "") {
    const std::vector<std::string_view> places(mirrors.begin(), mirrors.end());
    return GetData({"set", "help", files, places, inside, "set"}, needs_);
  }
  std::string ErrorOf(const std::vector<std::string>& mirrors) {
    try {
      Get(mirrors);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  void ExpectThere() {
    EXPECT_EQ(ReadFile(needs_.folder + "/a.gz"), kPacked) << said_;
    EXPECT_FALSE(Exists(needs_.folder + ".part"));
  }

  TemporaryDirectory home_;
  GetNeeds needs_;
  std::string said_;
};

std::map<std::string, MirrorFile> One(const std::string& content,
                                      MirrorMood mood = MirrorMood::kGood) {
  return {{"a.gz", {content, mood}}};
}

bool Holds(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

TEST_F(GetTest, WhatIsRightIsMovedToItsName) {
  MirrorServer mirror(One(kPacked));
  EXPECT_TRUE(Get({mirror.address()}));
  ExpectThere();
  EXPECT_FALSE(Get({mirror.address()}));
  EXPECT_EQ(mirror.requests().size(), 1u);
}

// Some pack the file anew: what is inside counts.
TEST_F(GetTest, AMirrorMayPackAnew) {
  const std::string other = Gzip(kContent.substr(0, 1000)) + Gzip(kContent.substr(1000));
  MirrorServer mirror(One(other));
  EXPECT_TRUE(Get({mirror.address()}));
  EXPECT_EQ(ReadFile(needs_.folder + "/a.gz"), other);
}

TEST_F(GetTest, GoesOnAfterCuts) {
  MirrorServer mirror(One(kPacked, MirrorMood::kCuts));
  EXPECT_TRUE(Get({mirror.address()}));
  ExpectThere();
  EXPECT_GT(mirror.requests().size(), 3u);
}

TEST_F(GetTest, GoesOnWhereAnEarlierOneWasKilled) {
  for (const MirrorMood mood : {MirrorMood::kGood, MirrorMood::kNoRange}) {
    RemoveTree(needs_.folder);
    MakeDirectories(needs_.folder + ".part");
    ReplaceFile(needs_.folder + ".part/a.gz", kPacked.substr(0, 1000));
    MirrorServer mirror(One(kPacked, mood));
    EXPECT_TRUE(Get({mirror.address()}));
    ExpectThere();
  }
}

TEST_F(GetTest, ABeginningThatDoesNotFitIsThrownAway) {
  MakeDirectories(needs_.folder + ".part");
  ReplaceFile(needs_.folder + ".part/a.gz", std::string(1000, 'x'));
  MirrorServer mirror(One(kPacked));
  EXPECT_TRUE(Get({mirror.address()}));
  ExpectThere();
}

TEST_F(GetTest, TheNextMirrorIsTriedAndEachIsNamed) {
  MirrorServer page(One("<!DOCTYPE html><html>please log in</html>"));
  MirrorServer half(One(kPacked.substr(0, kPacked.size() / 2)));
  MirrorServer wrong(One(Gzip(Noise(299999))));
  MirrorServer more(One(kPacked + Noise(500000)));
  MirrorServer none({});
  MirrorServer good(One(kPacked));
  const std::vector<std::string> bad = {page.address(), half.address(), wrong.address(),
                                        more.address(), none.address(), "http://127.0.0.1:1/"};
  const std::string error = ErrorOf(bad);
  EXPECT_TRUE(Holds(error, "no mirror gave a.gz; fetch it elsewhere")) << error;
  EXPECT_TRUE(Holds(error, "--from FILE --to " + needs_.folder)) << error;
  for (const std::string& mirror : bad) EXPECT_TRUE(Holds(said_, mirror + "a.gz: ")) << said_;
  for (const char* part : {"a web page", "damaged", "sha256 differs", "sent more than", "404",
                           "to fetch elsewhere: ", kPackedSum.c_str()}) {
    EXPECT_TRUE(Holds(said_, part)) << part << " in " << said_;
  }
  EXPECT_FALSE(Exists(needs_.folder));
  EXPECT_TRUE(Get({page.address(), wrong.address(), none.address(), good.address()}));
  ExpectThere();
}

TEST_F(GetTest, AMirrorThatStallsIsLeft) {
  needs_.stall_s = 3;
  MirrorServer stalls(One(kPacked, MirrorMood::kStalls));
  MirrorServer good(One(kPacked));
  // The good one has as little time, which may not do on a busy machine at first.
  EXPECT_TRUE(Get({stalls.address(), good.address(), good.address(), good.address()}));
  ExpectThere();
}

TEST_F(GetTest, WgetDoesAsWell) {
  needs_.tool = {fs::path(needs_.tool.path).parent_path() / "wget", false};
  if (!Exists(needs_.tool.path)) GTEST_SKIP() << "wget is not beside curl";
  MirrorServer none({}), cuts(One(kPacked, MirrorMood::kCuts));
  EXPECT_TRUE(Get({none.address(), cuts.address()}));
  ExpectThere();
}

TEST_F(GetTest, AProxyIsUsed) {
  MirrorServer proxy(One(kPacked));
  setenv("http_proxy", proxy.address().c_str(), 1);
  EXPECT_TRUE(Get({"http://mirror.invalid/sets/"}));
  unsetenv("http_proxy");
  ExpectThere();
  EXPECT_TRUE(Holds(proxy.requests()[0], "GET http://mirror.invalid/sets/a.gz")) << said_;
}

TEST_F(GetTest, TwoAtOnceFetchOnce) {
  MirrorServer mirror(One(kPacked));
  std::atomic<int> fetched = 0;
  {
    std::vector<std::jthread> both;
    for (int i = 0; i < 2; ++i) {
      both.emplace_back([&] {
        GetNeeds needs = needs_;
        needs.say = [](const std::string&) {};
        const OfferedFile files[] = {{"a.gz", int64_t(kPacked.size()), kPackedSum, kContentSum}};
        const std::string address = mirror.address();
        const std::string_view mirrors[] = {address};
        fetched += GetData({"set", "help", files, mirrors, "", "set"}, needs);
      });
    }
  }
  EXPECT_EQ(fetched, 1);
  EXPECT_EQ(mirror.requests().size(), 1u);
  ExpectThere();
}

TEST_F(GetTest, WhatWasFetchedElsewhereIsTaken) {
  needs_.tool = {};
  EXPECT_TRUE(Holds(ErrorOf({"http://mirror.invalid/"}), "neither curl nor wget"));
  MakeDirectories(home_ / "usb");
  needs_.from = home_ / "usb";
  EXPECT_TRUE(Holds(ErrorOf({"http://mirror.invalid/"}), "there is no a.gz in"));
  ReplaceFile(home_ / "usb/a.gz", "something else");
  EXPECT_TRUE(Holds(ErrorOf({"http://mirror.invalid/"}), "usb/a.gz is not a.gz"));
  ReplaceFile(home_ / "usb/a.gz", kPacked);
  EXPECT_TRUE(Get({"http://mirror.invalid/"}));
  ExpectThere();
}

TEST_F(GetTest, ADiskThatIsTooSmallIsNamed) {
  const OfferedFile files[] = {{"a.tgz", int64_t{1} << 58, kPackedSum, ""}};
  try {
    GetFiles(files, {"http://mirror.invalid/"}, "a");
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_TRUE(Holds(error.what(), "are free at")) << error.what();
  }
}

// In a process of its own, which alone sees the small disk. 0: passed, 1: failed, 2: there is none.
TEST_F(GetTest, ADiskThatFillsUpIsNoFaultOfTheMirror) {
  MirrorServer mirror(One(kPacked, MirrorMood::kCuts)), never(One(kPacked));
  const auto fill = [&]() -> int {
    if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 2;
    mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("tmpfs", home_.path().c_str(), "tmpfs", 0, "size=512k") != 0) return 2;
    bool full = false;
    needs_.live = [&](const std::string&) {
      if (full) return;
      full = true;
      std::FILE* const filler = std::fopen((home_ / "filler").c_str(), "wb");
      const std::string block(4096, 'x');
      while (std::fwrite(block.data(), 1, block.size(), filler) == block.size()) {
      }
      std::fclose(filler);
    };
    const std::string error = ErrorOf({mirror.address(), never.address()});
    fs::remove(home_ / "filler");
    needs_.live = [](const std::string&) {};
    const bool right = Holds(error, "the disk is full") && Holds(error, "make room") &&
                       Get({mirror.address()}) && ReadFile(home_ / "set/a.gz") == kPacked;
    if (!right) std::fprintf(stderr, "%s; %s\n", error.c_str(), said_.c_str());
    return right ? 0 : 1;
  };
  const pid_t child = fork();
  if (child == 0) _exit(fill());
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "a small tmpfs cannot be mounted here";
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(never.requests().empty());
}

TEST_F(GetTest, AFolderWithOtherThingsIsNotTouched) {
  MakeDirectories(needs_.folder);
  ReplaceFile(needs_.folder + "/mine", "x");
  EXPECT_TRUE(Holds(ErrorOf({"http://mirror.invalid/"}), "is not empty"));
  EXPECT_EQ(ReadFile(needs_.folder + "/mine"), "x");
  const OfferedFile archive[] = {{"a.tgz", 1000, kPackedSum, ""}};
  EXPECT_THROW(GetFiles(archive, {"http://mirror.invalid/"}, "top"), Error);
  EXPECT_EQ(ReadFile(needs_.folder + "/mine"), "x");
}

TEST_F(GetTest, AnArchiveIsUnpacked) {
  const std::string longer = "top/" + std::string(120, 'n');
  const std::string archive = Gzip(Entry("top/", '5') + Entry("top/a.bin", '0', Noise(1500)) +
                                   Entry("././@LongLink", 'L', longer + std::string(1, '\0')) +
                                   Entry("top/n", '0', "long") + kEnd);
  const std::string sum = Sha256Hex(archive);
  const OfferedFile files[] = {{"a.tgz", int64_t(archive.size()), sum, ""}};
  MirrorServer mirror({{"a.tgz", {archive}}});
  EXPECT_TRUE(GetFiles(files, {mirror.address()}, "top"));
  EXPECT_EQ(ReadFile(needs_.folder + "/a.bin"), Noise(1500));
  EXPECT_EQ(ReadFile(home_ / ("set" + longer.substr(3))), "long");
  EXPECT_FALSE(GetFiles(files, {mirror.address()}, "top"));
}

TEST_F(GetTest, AnArchiveThatLeavesItsFolderIsRefused) {
  const auto refused = [&](const std::string& archive) -> std::string {
    ReplaceFile(home_ / "x.tar", archive);
    const std::string into = home_ / "into";
    MakeDirectories(into);
    try {
      Untar(home_ / "x.tar", into);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_TRUE(Holds(refused(Entry("../evil", '0', "x") + kEnd), "\"../evil\""));
  EXPECT_TRUE(Holds(refused(Entry("a/../../evil", '0', "x") + kEnd), "evil"));
  EXPECT_TRUE(Holds(refused(Entry("/etc/evil", '0', "x") + kEnd), "not below its own folder"));
  for (const char type : {'1', '2', '3', '4', '6'}) {
    EXPECT_TRUE(Holds(refused(Entry("link", type) + kEnd), "no file and no folder")) << type;
  }
  EXPECT_TRUE(Holds(refused(Entry("a", '0', Noise(2000)).substr(0, 1024)), "its end is missing"));
  EXPECT_TRUE(Holds(refused(Entry("a", '0', "x")), "its end is missing"));
  EXPECT_TRUE(Holds(refused(Noise(2048)), "is no"));
  EXPECT_FALSE(Exists(home_ / "evil"));
  EXPECT_EQ(refused(Entry("a", '0', "x") + kEnd), "");
}

// An archive's folders, unpacked by hand: one inside another of its name, and one not.
TEST_F(GetTest, FoldersThatWereBroughtAreCopiedAndChecked) {
  const std::string brought = home_ / "brought";
  const std::pair<std::string, std::string> kFiles[] = {
      {"test/test/b/2.jpg", "test/b/2.jpg"},
      {"train/a/1.jpg", "train/a/1.jpg"},
      {"train/b/1.jpg", "train/b/1.jpg"},
  };
  std::string lines;
  for (const auto& [there, name] : kFiles) {
    MakeDirectories(fs::path(brought + "/" + there).parent_path().string());
    ReplaceFile(brought + "/" + there, "bytes of " + name);
    lines += Sha256Hex("bytes of " + name) + "  " + name + "\n";
  }
  const std::string sum = Sha256Hex(lines);
  constexpr std::string_view kNames[] = {"test", "train"};
  const OfferedFolders folders{"a place", kNames, 3, 60, sum};
  const auto error = [&]() -> std::string {
    try {
      EXPECT_TRUE(GetData({"set", "help", {}, {}, "", "images:", &folders}, needs_));
    } catch (const Error& refused) {
      EXPECT_FALSE(Exists(needs_.folder));
      return refused.what();
    }
    return "";
  };
  EXPECT_TRUE(Holds(error(), "--from DIR")) << said_;
  EXPECT_TRUE(Holds(said_, "a place")) << said_;
  EXPECT_TRUE(Holds(said_, sum)) << said_;

  needs_.from = brought;
  ReplaceFile(brought + "/train/b/more", "");
  EXPECT_TRUE(Holds(error(), "holds 4 files in test and train, expected 3"));
  RemoveTree(brought + "/train/b/more");
  ReplaceFile(brought + "/train/b/1.jpg", "other");
  EXPECT_TRUE(Holds(error(), "their sha256 differs"));
  ReplaceFile(brought + "/train/b/1.jpg", "bytes of train/b/1.jpg");
  fs::rename(brought + "/test", brought + "/tests");
  EXPECT_TRUE(Holds(error(), "there is no folder test"));
  fs::rename(brought + "/tests", brought + "/test");

  EXPECT_EQ(error(), "");
  for (const auto& [there, name] : kFiles) {
    EXPECT_EQ(ReadFile(needs_.folder + "/" + name), "bytes of " + name);
  }
  EXPECT_FALSE(Exists(needs_.folder + ".part"));
  EXPECT_FALSE(GetData({"set", "help", {}, {}, "", "images:", &folders}, needs_));  // it is there
}

TEST(Catalogue, ItsHomeIsTheUsers) {
  std::map<std::string, std::string> variables = {{"HOME", "/home/u"}};
  const auto home = [&] {
    return DataHome([&](const char* name) -> const char* {
      const auto at = variables.find(name);
      return at == variables.end() ? nullptr : at->second.c_str();
    });
  };
  EXPECT_EQ(home(), "/home/u/.cache/trireme");
  variables["XDG_CACHE_HOME"] = "/cache";
  EXPECT_EQ(home(), "/cache/trireme");
  variables["TRIREME_DATA"] = "/data";
  EXPECT_EQ(home(), "/data");
  variables.clear();
  EXPECT_EQ(home(), "");
}

TEST(Catalogue, EveryRowIsComplete) {
  for (const OfferedData& data : OfferedDataSets()) {
    EXPECT_EQ(data.files.empty(), data.folders != nullptr) << data.name;
    if (data.folders != nullptr) {
      EXPECT_EQ(data.folders->sha256.size(), 64u) << data.name;
      EXPECT_TRUE(std::is_sorted(data.folders->names.begin(), data.folders->names.end()));
      continue;
    }
    EXPECT_GE(data.mirrors.size(), 2u) << data.name;
    for (const std::string_view mirror : data.mirrors) EXPECT_TRUE(mirror.ends_with('/')) << mirror;
    for (const OfferedFile& file : data.files) {
      EXPECT_EQ(file.sha256.size(), 64u) << file.name;
      EXPECT_EQ(file.unpacked.empty(), !data.inside.empty()) << file.name;
    }
    EXPECT_EQ(&FindOffered(data.name), &data);
  }
  EXPECT_THROW(FindOffered("imagenet"), UsageError);
}

}  // namespace
}  // namespace trireme
