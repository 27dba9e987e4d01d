#pragma once
#include <string>

namespace trireme {

// Now, in UTC and as ISO 8601 writes it: 2026-01-31T10:44:00.123Z. Later ones sort behind.
std::string UtcNow();

}  // namespace trireme
