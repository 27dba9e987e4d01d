#pragma once
#include <string>
#include <string_view>

namespace trireme {

// What was built. The program has them from git (cmake/build_info.cmake); in a program that is
// linked without, such as a test, the commit is "unknown" (build_unknown.cc).
std::string_view Version();  // 0.2.0, or 0.2.0-14-g9000c29 after a tag
std::string_view Commit();   // 40 hexadecimal digits, "-dirty" behind them where files were changed
std::string_view CommitDate();  // 2026-01-31, or 1970-01-01 where the commit is unknown

// For people, and for two programs that ask whether they are the same:
// "0.1.0 (commit 9000c29d0f2e)".
std::string BuildText(std::string_view version = Version(), std::string_view commit = Commit());

}  // namespace trireme
