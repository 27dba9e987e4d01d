# Writes OUTPUT, a C++ file that says what is built: the version and the commit of the tree SOURCE
# from git, or from an archive of it, or VERSION and "unknown". Run at every build; the file is
# touched only when its words change.
#   cmake -D SOURCE=DIR -D VERSION=0.1.0 -D OUTPUT=FILE -P cmake/build_info.cmake
cmake_minimum_required(VERSION 3.25)
set(commit unknown)
set(described "")
set(date 1970-01-01)  # unknown, too
file(REAL_PATH "${SOURCE}" source)

# The words of git in the tree, or nothing: no git, no repository.
function(ask_git result)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env GIT_OPTIONAL_LOCKS=0 git -C "${source}" ${ARGN}
    OUTPUT_VARIABLE words ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
  if(failed)
    set(words "")
  endif()
  set(${result} "${words}" PARENT_SCOPE)
endfunction()

# An unpacked archive may lie inside somebody else's repository, whose commit says nothing.
ask_git(top rev-parse --show-toplevel)
if(top)
  file(REAL_PATH "${top}" top)
endif()
if(top STREQUAL source)
  ask_git(head rev-parse HEAD)
  ask_git(described describe --tags --always --dirty)
  ask_git(date log -1 --format=%cs)
endif()
if(head)
  set(commit ${head})
  if(described MATCHES "-dirty$")
    string(APPEND commit -dirty)
  endif()
elseif(EXISTS "${source}/cmake/archive_commit.txt")
  file(STRINGS "${source}/cmake/archive_commit.txt" lines)
  list(GET lines 0 first)
  if(first MATCHES "^[0-9a-f]+$")
    set(commit ${first})
    list(LENGTH lines count)
    if(count GREATER 1)
      list(GET lines 1 described)
    endif()
    if(lines MATCHES "([0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9])$")
      set(date ${CMAKE_MATCH_1})
    endif()
  endif()
endif()

# Only a tag is a version: without one describe gives the commit again.
set(version ${VERSION})
if(described MATCHES "^v?([0-9]+\\.[0-9].*)$")
  set(version ${CMAKE_MATCH_1})
endif()

file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT [[
// Written by cmake/build_info.cmake.
#include "base/version.h"

namespace trireme {

std::string_view Version() { return "@version@"; }
std::string_view Commit() { return "@commit@"; }
std::string_view CommitDate() { return "@date@"; }

}  // namespace trireme
]] @ONLY)
