#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

// Files whose loss would hurt. Every failure is an Error that names the path and the system's
// reason; interrupted and short calls are continued. Objects belong to one thread at a time.

// The whole file. A folder, or more than `max_bytes`, is refused before memory is taken.
std::string ReadFile(const std::string& path, size_t max_bytes = size_t{1} << 30);

// A Replacement (see below) with this content.
void ReplaceFile(const std::string& path, std::string_view content);

void MakeDirectories(const std::string& path);
void SyncDirectory(const std::string& path);  // makes renames inside it durable
void RenameDurably(const std::string& from, const std::string& to);
bool Exists(const std::string& path);  // also for a link that points nowhere

// A name in the same folder for something unfinished. What a killed process left under such names
// is removed by RemoveLeftovers; call it only when nobody else writes into the folder.
std::string NameBeside(const std::string& path);
bool IsBeside(const std::string& name, const std::string& path);  // NameBeside(path) made `name`
void RemoveLeftovers(const std::string& directory);

// Gone at once for every reader (renamed first), then deleted. Nothing happens if it is not there.
void RemoveTree(const std::string& path);

// An open regular file that is read at positions. Threads may share it.
class InputFile {
 public:
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  void ReadAt(uint64_t offset, void* into, size_t bytes) const;

 private:
  std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// A file being written. Without Close() its end may be missing and nobody is told.
class OutputFile {
 public:
  // kInto: something that is there already and is perhaps no regular file: a device, a pipe.
  enum class Start { kEmpty, kAtEnd, kInto };
  explicit OutputFile(std::string path, Start start = Start::kEmpty);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  const std::string& path() const { return path_; }
  void Write(const void* from, size_t bytes);
  void Write(std::string_view text) { Write(text.data(), text.size()); }
  void WriteAt(uint64_t offset, const void* from, size_t bytes);  // Write() goes on where it was
  void ReadAt(uint64_t offset, void* into, size_t bytes) const;
  bool CanWriteAt() const;  // not of a pipe or a terminal
  void Sync();
  void Close();

  // Shows others, as long as the file is open, that its writer lives. False if the file has been
  // removed meanwhile.
  bool Claim();

 private:
  std::string path_;
  int fd_ = -1;
};

// A new version of a file. Old content or new content, nothing between, whenever the machine stops:
// written beside, synced, renamed; a full disk, or no Commit(), leaves the old file. Links are
// followed, the file that they lead to is replaced. What is there but no regular file (a device, a
// pipe, /dev/stdout) is written into. What a killed writer left beside the same file is removed.
class Replacement {
 public:
  explicit Replacement(const std::string& path);
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  OutputFile& file() { return *file_; }
  void Commit();

  static void Check(const std::string& path);  // that one could begin; nothing changes

 private:
  std::string target_, beside_;  // beside_ is empty if the target is written into
  std::optional<OutputFile> file_;
};

// A file that has no name, with this content: gone with the object, and also if the process is
// killed.
class NamelessFile {
 public:
  explicit NamelessFile(std::string_view content);
  ~NamelessFile();
  NamelessFile(const NamelessFile&) = delete;
  NamelessFile& operator=(const NamelessFile&) = delete;

  std::string path() const;  // for this process, while the object lives

 private:
  int fd_ = -1;
};

// An empty folder that disappears with the object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(std::string_view name) const { return path_ + "/" + std::string(name); }

 private:
  std::string path_;
};

}  // namespace trireme
