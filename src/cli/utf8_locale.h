#pragma once

namespace trireme {

// Whether the environment says that text is in UTF-8 (LC_ALL, LC_CTYPE, LANG).
bool Utf8Locale();

}  // namespace trireme
