#include "cli/utf8_locale.h"

#include <cstdlib>
#include <string>

namespace trireme {

bool Utf8Locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (!value || !*value) continue;
    const std::string text = value;
    return text.find("UTF-8") != text.npos || text.find("utf8") != text.npos ||
           text.find("UTF8") != text.npos || text.find("utf-8") != text.npos;
  }
  return false;
}

}  // namespace trireme
