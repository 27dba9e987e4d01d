#include "data/get/get.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/sha256.h"
#include "base/text.h"
#include "data/bytes.h"
#include "data/get/untar.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

// In the folder of an archive: which archive it was.
constexpr char kMark[] = ".trireme-archive";

// More than this is not the file, however it was packed.
int64_t MostBytes(const OfferedFile& file) {
  return file.unpacked.empty() ? file.bytes : file.bytes + file.bytes / 8 + (64 << 10);
}

bool LooksLikeAPage(const std::string& path) {
  char begin[16] = {};
  const InputFile file(path);
  file.ReadAt(0, begin, size_t(std::min<uint64_t>(file.size(), sizeof(begin) - 1)));
  return Trim(begin).starts_with("<");
}

// What is wrong with a file that has arrived; empty: nothing.
std::string WhatIsWrong(const std::string& path, const OfferedFile& file) {
  const int64_t bytes = ArrivedBytes(path);
  if (bytes == 0) return "sent nothing";
  if (LooksLikeAPage(path)) return "sent a web page instead of the file";
  if (file.unpacked.empty() && bytes != file.bytes) {
    return fmt::format("sent {} bytes, expected {}", bytes, file.bytes);
  }
  try {
    if (Sha256OfFile(path) == file.sha256) return "";
    if (file.unpacked.empty()) return "sent another file: its sha256 differs";
    const std::vector<uint8_t> unpacked = ReadBytes(path);
    Sha256 sum;
    sum.Add(unpacked.data(), unpacked.size());
    return sum.Hex() == file.unpacked ? "" : "sent another file: its sha256 differs";
  } catch (const Error& error) {
    return fmt::format("sent a damaged file: {}", error.what());
  }
}

// Only one process at a time fetches into a folder.
class FolderTurn {
 public:
  FolderTurn(const std::string& path, const GetNeeds& needs)
      : fd_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    if (fd_ < 0) throw Error("cannot write {}: {}", path, std::strerror(errno));
    if (flock(fd_, LOCK_EX | LOCK_NB) == 0) return;
    needs.say(fmt::format("another process fetches into {}; waiting for it", needs.folder));
    while (flock(fd_, LOCK_EX) != 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      close(fd_);
      throw Error("cannot lock {}: {}", path, std::strerror(error));
    }
  }
  ~FolderTurn() { close(fd_); }  // the file stays: another one may wait for it
  FolderTurn(const FolderTurn&) = delete;
  FolderTurn& operator=(const FolderTurn&) = delete;

 private:
  const int fd_;
};

// In the words of curl and wget.
bool HasStalled(const std::string& problem) {
  return problem.find("(28)") != problem.npos || problem.find("timed out") != problem.npos;
}

// Where the rest of a file has no room, no mirror is to blame. What has arrived stays.
void CheckRoomForRest(const OfferedFile& file, const std::string& path) {
  const std::string folder = fs::path(path).parent_path().string();
  const int64_t left = file.bytes - ArrivedBytes(path);
  std::error_code none;
  const fs::space_info space = fs::space(folder, none);
  if (none || left <= 0 || space.available >= uintmax_t(left)) return;
  throw Error(
      "the disk is full: {} of {} are missing, but only {} are free at {}; make room and start the "
      "same command again, it goes on from there",
      FormatBytes(double(left)), file.name, FormatBytes(double(space.available)), folder);
}

// Fetches one file from one mirror. Goes on where it was cut, as long as something arrives, and
// begins anew where the beginning that was there does not fit. What a mirror that stalls has sent
// is left for the next one.
std::string FetchFrom(std::string_view mirror, const OfferedFile& file, const std::string& path,
                      const GetNeeds& needs) {
  const Download download{.url = fmt::format("{}{}", mirror, file.name),
                          .path = path,
                          .most_bytes = MostBytes(file),
                          .stall_s = needs.stall_s};
  const auto progress = [&](int64_t bytes) {
    needs.live(fmt::format("{}: {} of {}", file.name, FormatBytes(double(bytes)),
                           FormatBytes(double(file.bytes))));
  };
  constexpr int kMostCuts = 20;
  std::string problem;
  for (int i = 0; i < kMostCuts; ++i) {
    const int64_t before = ArrivedBytes(path);
    problem = RunDownload(needs.tool, download, progress);
    if (!problem.empty()) CheckRoomForRest(file, path);
    const bool cut =
        !problem.empty() && ArrivedBytes(path) > before && ArrivedBytes(path) < file.bytes;
    if (cut && HasStalled(problem)) return problem;
    if (cut) continue;
    if (problem.empty()) problem = WhatIsWrong(path, file);
    if (problem.empty()) return "";
    std::error_code none;  // what stays is judged again
    fs::remove(path, none);
    if (before == 0) return problem;
  }
  return problem;
}

// Says what a person may fetch elsewhere, and ends.
[[noreturn]] void RefuseWithHelp(const std::string& problem, const OfferedData& data,
                                 const GetNeeds& needs) {
  for (const OfferedFile& file : data.files) {
    needs.say(fmt::format("to fetch elsewhere: {}{}, {} bytes, sha256 {}", data.mirrors[0],
                          file.name, file.bytes, file.sha256));
  }
  if (const OfferedFolders* folders = data.folders) {
    needs.say(fmt::format(
        "to fetch elsewhere, and to unpack: {}: the folders {}, {} files, {} bytes", folders->place,
        fmt::join(folders->names, " and "), folders->files, folders->bytes));
    needs.say(
        fmt::format("sha256 of what they hold, where they lie side by side: {} (find {} -type f | "
                    "LC_ALL=C sort "
                    "| tr '\\n' '\\0' | xargs -0 sha256sum | sha256sum)",
                    folders->sha256, fmt::join(folders->names, " ")));
  }
  throw Error("{}; fetch it elsewhere, then: trireme data get {} --from {} --to {}", problem,
              data.name, data.files.size() == 1 ? "FILE" : "DIR", needs.folder);
}

void FetchFile(const OfferedData& data, const OfferedFile& file, const std::string& path,
               const GetNeeds& needs) {
  for (const std::string_view mirror : data.mirrors) {
    const std::string problem = FetchFrom(mirror, file, path, needs);
    if (problem.empty()) {
      needs.say(fmt::format("{} ({}) from {}", file.name, FormatBytes(double(ArrivedBytes(path))),
                            mirror));
      return;
    }
    needs.say(fmt::format("{}{}: {}", mirror, file.name, problem));
  }
  RefuseWithHelp(fmt::format("no mirror gave {}", file.name), data, needs);
}

// A file that was brought: itself, or one of this name in a folder, packed or not.
void TakeFile(const OfferedFile& file, const std::string& path, const GetNeeds& needs) {
  std::string from = needs.from;
  std::error_code none;
  if (fs::is_directory(from, none)) {
    std::string plain(file.name);
    if (plain.ends_with(".gz")) plain.resize(plain.size() - 3);
    const std::vector<std::string> names = {plain};
    from = FindFile(needs.from, names);
    if (Exists(fmt::format("{}/{}", needs.from, file.name))) {
      from = fmt::format("{}/{}", needs.from, file.name);
    }
    if (from.empty()) throw Error("there is no {} in {}", file.name, needs.from);
  }
  if (!Exists(from)) throw Error("there is no file {}", from);
  if (const std::string wrong = WhatIsWrong(from, file); !wrong.empty()) {
    throw Error("{} is not {} ({})", from, file.name, wrong.substr(wrong.find(' ') + 1));
  }
  std::error_code problem;
  fs::copy_file(from, path, fs::copy_options::overwrite_existing, problem);
  if (problem) throw Error("cannot copy {} to {}: {}", from, path, problem.message());
}

// Folders that were brought: copied, and what was copied is what is checked.
void TakeFolders(const OfferedFolders& folders, const std::string& to, const GetNeeds& needs) {
  Sha256 sum;
  int64_t copied = 0;
  for (const std::string_view name : folders.names) {
    fs::path from = fs::path(needs.from) / name;
    if (std::error_code none; fs::is_directory(from / name, none)) from /= name;
    if (std::error_code none; !fs::is_directory(from, none)) {
      throw Error("there is no folder {} in {}", name, needs.from);
    }
    std::vector<std::string> paths;
    try {
      for (const auto& entry : fs::recursive_directory_iterator(from)) {
        if (!entry.is_directory()) paths.push_back(entry.path().lexically_relative(from).string());
      }
    } catch (const fs::filesystem_error& error) {
      throw Error("cannot read all of {}: {}", from.string(), error.code().message());
    }
    std::sort(paths.begin(), paths.end());
    for (const std::string& path : paths) {
      const std::string target = fmt::format("{}/{}/{}", to, name, path);
      MakeDirectories(fs::path(target).parent_path().string());
      std::error_code problem;
      fs::copy_file(from / path, target, fs::copy_options::overwrite_existing, problem);
      if (problem) {
        throw Error("cannot copy {} to {}: {}", (from / path).string(), target, problem.message());
      }
      sum.Add(fmt::format("{}  {}/{}\n", Sha256OfFile(target), name, path));
      if (++copied % 256 == 0) needs.live(fmt::format("{} of {} files", copied, folders.files));
    }
  }
  if (copied != folders.files) {
    throw Error("{} holds {} files in {}, expected {}; unpack all of the archive, and nothing else",
                needs.from, copied, fmt::join(folders.names, " and "), folders.files);
  }
  if (sum.Hex() != folders.sha256) {
    throw Error("{} holds other files than expected: their sha256 differs", needs.from);
  }
}

// Before anything is fetched: the archive and what comes out of it, which is a little more.
void CheckRoom(const OfferedData& data, const std::string& folder) {
  double needed = 0;
  for (const OfferedFile& file : data.files) {
    needed += double(file.bytes) * (file.unpacked.empty() ? 2.2 : 1);
  }
  if (data.folders != nullptr) needed += double(data.folders->bytes);
  std::error_code none;
  const fs::space_info space = fs::space(folder, none);
  if (!none && double(space.available) < needed) {
    throw Error("{} needs {}, but only {} are free at {}; choose another place with --to DIR",
                data.name, FormatBytes(needed), FormatBytes(double(space.available)), folder);
  }
}

bool IsThere(const OfferedData& data, const std::string& folder) {
  std::error_code none;
  if (!fs::exists(folder, none) || fs::is_empty(folder, none)) return false;
  const auto expect = [&](bool there, std::string_view what) {
    if (there) return;
    throw Error(
        "{} is not empty, and {} in it is missing or damaged; remove the folder, or "
        "choose another one with --to DIR",
        folder, what);
  };
  const auto marked = [&](std::string_view sha256) {
    const std::string path = fmt::format("{}/{}", folder, kMark);
    return Exists(path) && Trim(ReadFile(path)) == sha256;
  };
  for (const OfferedFile& file : data.files) {
    const bool archive = file.unpacked.empty();  // unpacked when it was right
    const std::string path = fmt::format("{}/{}", folder, file.name);
    expect(archive ? marked(file.sha256) : Exists(path) && WhatIsWrong(path, file).empty(),
           file.name);
  }
  if (data.folders != nullptr) expect(marked(data.folders->sha256), data.folders->names[0]);
  return true;
}

}  // namespace

bool GetData(const OfferedData& data, const GetNeeds& needs) {
  if (needs.from.empty() && data.folders != nullptr) {
    RefuseWithHelp(fmt::format("{} needs an account", data.name), data, needs);
  }
  if (needs.tool.path.empty() && needs.from.empty()) {
    RefuseWithHelp("neither curl nor wget is on PATH", data, needs);
  }
  const std::string beside = needs.folder + ".part";
  MakeDirectories(beside);
  const FolderTurn turn(needs.folder + ".lock", needs);
  if (IsThere(data, needs.folder)) {
    RemoveTree(beside);
    return false;
  }
  MakeDirectories(beside);  // the other process may have moved it
  CheckRoom(data, beside);
  std::string ready = beside;
  if (data.folders != nullptr) {
    RemoveTree(beside);  // what an interrupted copy has left
    TakeFolders(*data.folders, beside, needs);
    ReplaceFile(fmt::format("{}/{}", beside, kMark), std::string(data.folders->sha256) + "\n");
  }
  for (const OfferedFile& file : data.files) {
    const std::string path = fmt::format("{}/{}", beside, file.name);
    if (!needs.from.empty()) {
      TakeFile(file, path, needs);
    } else if (!Exists(path) || !WhatIsWrong(path, file).empty()) {
      FetchFile(data, file, path, needs);
    }
    if (!file.unpacked.empty()) continue;
    const std::string unpacked = beside + "/unpacked";
    RemoveTree(unpacked);
    MakeDirectories(unpacked);
    needs.live(fmt::format("{}: unpacking", file.name));
    Untar(path, unpacked);
    ready = fmt::format("{}/{}", unpacked, data.inside);
    if (!fs::is_directory(ready)) throw Error("{} holds no folder {}", path, data.inside);
    ReplaceFile(fmt::format("{}/{}", ready, kMark), std::string(file.sha256) + "\n");
  }
  RenameDurably(ready, needs.folder);
  RemoveTree(beside);
  return true;
}

}  // namespace trireme
