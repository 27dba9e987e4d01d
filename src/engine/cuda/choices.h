#pragma once
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

namespace trireme::cuda {

// Which of the ways to compute a product or a convolution was the fastest, by its sizes: a number
// among those that the libraries advise. Kept in a file for later runs on the same kind of card
// with the same libraries (the target). Thread-safe.
class Choices {
 public:
  // A file that is missing, broken or of another target counts as empty. Without a path nothing is
  // kept.
  Choices(std::string path, std::string target);

  std::optional<int> Find(const std::string& key) const;
  void Set(const std::string& key, int way);

  // What others have saved meanwhile stays. A folder that cannot be written is not worth an error:
  // the next run measures again.
  void Save();

 private:
  using Ways = std::map<std::string, int>;
  Ways Read() const;

  const std::string path_, target_;
  mutable std::mutex mutex_;
  Ways ways_;  // guarded by mutex_
};

// In $XDG_CACHE_HOME/trireme or ~/.cache/trireme, one for each target; empty: neither is known.
std::string ChoicesFile(std::string_view target);

}  // namespace trireme::cuda
