#include "data/broken_pictures.h"

#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/files.h"
#include "base/team.h"
#include "data/scan_cache.h"
#include "image/decoder.h"

namespace trireme {
namespace {

constexpr size_t kFields = 3;  // of a file in the cache: its path, its state, its message

// Size and time of change, or "" where there is no such file.
std::string StateOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return "";
  return std::to_string(status.st_size) + " " + std::to_string(status.st_mtim.tv_sec) + " " +
         std::to_string(status.st_mtim.tv_nsec);
}

// "" if it decodes.
std::string WhatIsWrong(const std::string& path) {
  try {
    const std::string bytes = ReadFile(path, kMaxPictureFile);
    OpenPicture({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, path)->Verify();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

struct Verdict {
  std::string state, message;
};

std::unordered_map<std::string, Verdict> Remembered(const std::string& cache) {
  std::unordered_map<std::string, Verdict> known;
  const auto fields = ReadCache(cache);
  if (!fields || fields->size() % kFields != 0) return known;
  for (size_t i = 0; i < fields->size(); i += kFields) {
    known[(*fields)[i]] = {(*fields)[i + 1], (*fields)[i + 2]};
  }
  return known;
}

}  // namespace

std::vector<BrokenPicture> FindBroken(const std::string& folder, const PathList& files) {
  std::error_code error;
  const std::string whole = std::filesystem::canonical(folder, error).string();
  const std::string cache = error ? "" : CacheFile(whole, "verified");
  const std::unordered_map<std::string, Verdict> known = Remembered(cache);
  std::vector<Verdict> verdicts(files.size());
  std::atomic<size_t> next = 0, fresh = 0;
  Team team(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  team.Run([&](int) {
    for (size_t i = next++; i < files.size(); i = next++) {
      const std::string path = folder + "/" + std::string(files[i]);
      verdicts[i].state = StateOf(path);
      const auto before = known.find(std::string(files[i]));
      if (before != known.end() && before->second.state == verdicts[i].state) {
        verdicts[i].message = before->second.message;
      } else {
        verdicts[i].message = WhatIsWrong(path);
        ++fresh;
      }
    }
  });
  std::vector<BrokenPicture> broken;
  std::vector<std::string> fields;
  for (size_t i = 0; i < files.size(); ++i) {
    if (!verdicts[i].message.empty()) broken.push_back({i, verdicts[i].message});
    if (fresh == 0) continue;
    fields.insert(fields.end(), {std::string(files[i]), verdicts[i].state, verdicts[i].message});
  }
  if (fresh > 0) WriteCache(cache, fields);
  return broken;
}

std::vector<std::string> LeaveOutBroken(const std::string& folder, ScannedFolder& scan) {
  const std::vector<BrokenPicture> broken = FindBroken(folder, scan.files);
  if (broken.empty()) return {};
  PathList files;
  std::vector<int32_t> labels;
  std::vector<std::string> messages;
  std::vector<size_t> left(scan.classes.size());
  for (size_t i = 0; i < scan.files.size(); ++i) {
    if (messages.size() < broken.size() && broken[messages.size()].place == i) {
      messages.push_back(broken[messages.size()].message);
      continue;
    }
    files.Add(scan.files[i]);
    labels.push_back(scan.labels[i]);
    ++left[scan.labels[i]];
  }
  for (size_t c = 0; c < left.size(); ++c) {
    if (left[c] == 0) {
      throw Error("{}/{}: no image of this class can be decoded", folder, scan.classes[c]);
    }
  }
  scan.files = std::move(files);
  scan.labels = std::move(labels);
  return messages;
}

}  // namespace trireme
