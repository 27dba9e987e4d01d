#include "data/get/untar.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <vector>

#include "base/error.h"
#include "base/files.h"
#include "base/text.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTarBlock = 512;
using TarBlock = std::array<char, kTarBlock>;

// Fields of a header: where they begin, and how long they are.
struct TarField {
  size_t begin, size;
};
constexpr TarField kTarName = {0, 100}, kTarSize = {124, 12}, kTarChecksum = {148, 8},
                   kTarPrefix = {345, 155};
constexpr size_t kTarType = 156, kTarMagic = 257;

std::string TarText(const TarBlock& block, TarField field) {
  const char* begin = block.data() + field.begin;
  return {begin, strnlen(begin, field.size)};
}

class TarReader {
 public:
  explicit TarReader(const std::string& path) : path_(path), file_(gzopen(path.c_str(), "rb")) {
    if (!file_) throw Error("cannot read {}: {}", path, std::strerror(errno));
  }

  // False at the end of the file.
  bool Next(TarBlock& block) {
    const int got = gzread(file_.get(), block.data(), kTarBlock);
    if (got == 0) return false;
    if (got != int(kTarBlock)) throw Error("{} is damaged: it ends inside of a block", path_);
    return true;
  }

 private:
  struct Closing {
    void operator()(gzFile file) const { gzclose(file); }
  };
  const std::string& path_;
  std::unique_ptr<gzFile_s, Closing> file_;
};

uint64_t TarNumber(const TarBlock& block, TarField field, const std::string& archive) {
  uint64_t value = 0;
  const std::string text = TarText(block, field);
  for (const char c : Trim(text)) {
    if (c < '0' || c > '7') throw Error("{} is damaged: \"{}\" is no number", archive, c);
    value = value * 8 + uint64_t(c - '0');
  }
  return value;
}

void CheckTarHeader(const TarBlock& block, const std::string& archive) {
  uint64_t sum = 0;
  for (size_t i = 0; i < kTarBlock; ++i) {
    const bool own = i >= kTarChecksum.begin && i < kTarChecksum.begin + kTarChecksum.size;
    sum += own ? uint64_t(' ') : uint64_t(static_cast<unsigned char>(block[i]));
  }
  if (sum != TarNumber(block, kTarChecksum, archive)) throw Error("{} is no tar archive", archive);
}

// Of an extended header: "27 path=...\n" for each key.
std::string TarPathOf(std::string_view records) {
  std::string path;
  while (!records.empty()) {
    const size_t blank = records.find(' ');
    const auto length = ParseNumber<size_t>(std::string(records.substr(0, blank)));
    if (!length || *length > records.size() || *length <= blank + 1) break;
    const std::string_view record = records.substr(blank + 1, *length - blank - 2);
    if (record.starts_with("path=")) path = record.substr(5);
    records.remove_prefix(*length);
  }
  return path;
}

// Where an entry goes; throws where it would leave the folder.
fs::path TargetOf(const std::string& name, const std::string& archive, const std::string& into) {
  const fs::path path(name);
  const bool leaves = path.is_absolute() || std::ranges::find(path, "..") != path.end();
  if (name.empty() || leaves || name.find('\0') != name.npos) {
    throw Error("{} holds \"{}\", which is not below its own folder; it is refused", archive,
                name.substr(0, 200));
  }
  return fs::path(into) / path;
}

class TarUnpacker {
 public:
  TarUnpacker(const std::string& archive, const std::string& into)
      : archive_(archive), into_(into), reader_(archive) {}

  void Run() {
    TarBlock block;
    while (reader_.Next(block)) {
      if (std::ranges::all_of(block, [](char c) { return c == 0; })) return;  // the end
      CheckTarHeader(block, archive_);
      Entry(block);
    }
    throw Error("{} is damaged: its end is missing", archive_);
  }

 private:
  void Entry(const TarBlock& header) {
    const uint64_t bytes = TarNumber(header, kTarSize, archive_);
    const char type = header[kTarType];
    std::string name = longer_.empty() ? TarText(header, kTarName) : longer_;
    const bool ustar = std::memcmp(header.data() + kTarMagic, "ustar\0", 6) == 0;
    if (const std::string prefix = TarText(header, kTarPrefix);
        longer_.empty() && ustar && !prefix.empty()) {
      name = fmt::format("{}/{}", prefix, name);
    }
    switch (type) {
      case 'L':
        longer_ = Content(bytes);
        longer_.resize(strnlen(longer_.data(), longer_.size()));
        return;
      case 'x':
        longer_ = TarPathOf(Content(bytes));
        return;
      case 'g':
        Content(bytes);
        return;
      case '5':
        MakeDirectories(TargetOf(name, archive_, into_));
        break;
      case '0':
      case '\0':
        WriteFile(TargetOf(name, archive_, into_), bytes);
        break;
      default:
        throw Error("{} holds \"{}\", which is no file and no folder (type {}); it is refused",
                    archive_, name.substr(0, 200), type);
    }
    longer_.clear();
  }

  std::string Content(uint64_t bytes) {
    constexpr uint64_t kMost = 1 << 20;
    if (bytes > kMost) throw Error("{} is damaged: a name of {} bytes", archive_, bytes);
    std::string text;
    Copy(bytes, [&](std::string_view piece) { text += piece; });
    return text;
  }

  void WriteFile(const fs::path& path, uint64_t bytes) {
    MakeDirectories(path.parent_path());
    constexpr size_t kAtOnce = 64 << 10;
    OutputFile file(path);
    std::string waiting;
    Copy(bytes, [&](std::string_view piece) {
      waiting += piece;
      if (waiting.size() < kAtOnce) return;
      file.Write(waiting);
      waiting.clear();
    });
    file.Write(waiting);
    file.Close();
  }

  template <class Take>
  void Copy(uint64_t bytes, Take take) {
    TarBlock block;
    while (bytes > 0) {
      if (!reader_.Next(block)) throw Error("{} is damaged: its end is missing", archive_);
      const size_t part = size_t(std::min<uint64_t>(bytes, kTarBlock));
      take(std::string_view(block.data(), part));
      bytes -= part;
    }
  }

  const std::string& archive_;
  const std::string& into_;
  TarReader reader_;
  std::string longer_;  // the next entry's name, where it does not fit into a header
};

}  // namespace

void Untar(const std::string& archive, const std::string& into) {
  TarUnpacker(archive, into).Run();
}

}  // namespace trireme
