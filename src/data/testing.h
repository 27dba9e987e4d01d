#pragma once
// What the tests of this folder share: files made on the spot, and the message of a refusal.
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace trireme {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    // In memory where it can be: thousands of small files take a minute on some disks.
    const bool in_memory = access("/dev/shm", W_OK) == 0;
    const std::filesystem::path place =
        in_memory ? "/dev/shm" : std::filesystem::temp_directory_path();
    std::string name = (place / "trireme-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw Error("cannot make {}", name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }

  // Returns the path of the written file.
  std::string Write(const std::string& name, const std::string& content) const {
    const std::string path = path_ + "/" + name;
    std::ofstream(path, std::ios::binary).write(content.data(), std::ssize(content));
    return path;
  }

 private:
  std::string path_;
};

inline std::string Gzip(const std::string& content) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, content.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

// An idx file of unsigned bytes.
inline std::string Idx(const std::vector<uint32_t>& sizes, const std::string& data) {
  std::string bytes{0, 0, 8, static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(size >> shift & 0xff);
  }
  return bytes + data;
}

// Bytes that differ: 0, 37, 74, ... modulo 256.
inline std::string SomeBytes(size_t count) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(37 * i);
  return bytes;
}

// Labels 0, 1, ..., classes - 1, 0, ...
inline std::string SomeLabels(size_t count, size_t classes) {
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; ++i) bytes[i] = static_cast<char>(i % classes);
  return bytes;
}

inline std::string CifarRecords(size_t count) {
  std::string bytes;
  for (size_t i = 0; i < count; ++i) bytes += static_cast<char>(i % 10) + SomeBytes(3072);
  return bytes;
}

// The message of the Error that `call` throws.
template <class Call>
std::string Refusal(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return "";
}

// Whether `text` holds all of `parts`; if not, shows it.
inline testing::AssertionResult Holds(const std::string& text,
                                      const std::vector<std::string>& parts) {
  for (const std::string& part : parts) {
    if (text.find(part) == text.npos) {
      return testing::AssertionFailure() << "no '" << part << "' in: " << text;
    }
  }
  return testing::AssertionSuccess();
}

}  // namespace trireme
