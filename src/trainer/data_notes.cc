#include "trainer/data_notes.h"

#include <algorithm>

#include "base/text.h"

namespace trireme {

void SayLeftOut(const Log& log, const std::vector<std::string>& messages) {
  constexpr size_t kNamed = 20;
  for (size_t i = 0; i < std::min(messages.size(), kNamed); ++i) {
    log.Warn("data", "left out: {}", messages[i]);
  }
  if (messages.empty()) return;
  log.Warn("data", "{} left out (data.on_error)", Counted(int64_t(messages.size()), "file"));
}

void SayNotes(const Log& log, const std::vector<std::string>& notes) {
  for (const std::string& note : notes) log.Warn("data", "{}", note);
}

}  // namespace trireme
