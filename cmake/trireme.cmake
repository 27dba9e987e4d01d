# Two functions that every folder uses: one for its library, one for its tests.

add_library(trireme_flags INTERFACE)
target_compile_options(trireme_flags INTERFACE -Wall -Wextra -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 at -O3 sees both in the standard library's own strings and variants.
  target_compile_options(trireme_flags INTERFACE -Wno-restrict -Wno-maybe-uninitialized)
endif()
if(TRIREME_WERROR)
  target_compile_options(trireme_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Files compiled together see each other's names.
  target_compile_options(trireme_flags INTERFACE -Wno-subobject-linkage)
endif()
if(TRIREME_SANITIZE)
  target_compile_options(trireme_flags INTERFACE -fsanitize=${TRIREME_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(trireme_flags INTERFACE -fsanitize=${TRIREME_SANITIZE})
  if(TRIREME_SANITIZE MATCHES thread)  # gcc says so by itself, clang otherwise
    target_compile_definitions(trireme_flags INTERFACE TRIREME_WATCHES_THREADS)
  endif()
  # What the address sanitizer sees as well is not asked twice: these take a compiler's minutes.
  target_compile_options(trireme_flags INTERFACE -fno-sanitize=null,object-size,vptr)
  include(CheckLinkerFlag)
  check_linker_flag(CXX -fuse-ld=lld TRIREME_HAS_LLD)  # a hundred programs to link
  check_linker_flag(CXX -fuse-ld=gold TRIREME_HAS_GOLD)
  if(TRIREME_HAS_LLD)
    target_link_options(trireme_flags INTERFACE -fuse-ld=lld)
  elseif(TRIREME_HAS_GOLD)
    target_link_options(trireme_flags INTERFACE -fuse-ld=gold)
  endif()
  # A hundred programs of 50 MB and more: a third is relocations and what debuggers read.
  check_linker_flag(CXX -Wl,--compress-debug-sections=zlib TRIREME_COMPRESSES_DEBUG)
  if(TRIREME_COMPRESSES_DEBUG)
    target_link_options(trireme_flags INTERFACE -Wl,--compress-debug-sections=zlib)
  endif()
  if(NOT TRIREME_SANITIZE MATCHES thread)
    check_linker_flag(CXX -no-pie TRIREME_HAS_NO_PIE)
    if(TRIREME_HAS_NO_PIE)
      target_link_options(trireme_flags INTERFACE $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
    endif()
  endif()
else()
  target_compile_options(trireme_flags INTERFACE -Wshadow)
endif()
target_include_directories(trireme_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
# A kernel's fused multiply-adds are written out; elsewhere the compiler must not invent them, or
# the same formula would round differently in two places.
target_compile_options(trireme_flags INTERFACE -ffp-contract=off)

# The headers of others, compiled once for all files where that is wanted (scripts/check).
option(TRIREME_PRECOMPILED "precompile the standard library's headers and fmt's" OFF)
if(TRIREME_PRECOMPILED)
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/headers.cc CONTENT "")
  add_library(trireme_headers OBJECT ${CMAKE_CURRENT_BINARY_DIR}/headers.cc)
  target_link_libraries(trireme_headers PRIVATE trireme_flags fmt::fmt)
  target_precompile_headers(trireme_headers PRIVATE
    <fmt/format.h> <algorithm> <array> <atomic> <chrono> <cmath> <filesystem> <functional> <map>
    <memory> <mutex> <optional> <random> <span> <string> <thread> <vector>)
endif()

# trireme_library(data SOURCES a.cc b.cc DEPENDS base) makes trireme_data, alias trireme::data.
# Most of a build's time goes into the same headers again and again: SOURCES are compiled several at
# once (the preset debug compiles each alone and keeps it honest about what it includes), those APART,
# whose names would collide or which are long enough by themselves, are not. A library that COMPUTES
# is optimized most; with a sanitizer it alone is. One that is COLD, where no step spends its time, is
# optimized little, and is small in the portable file. So is one that STEERS: steps call it, but its
# loops over values are in flat or an engine.
if(TRIREME_SANITIZE)
  set(TRIREME_FILES_AT_ONCE 16)
else()
  set(TRIREME_FILES_AT_ONCE 8)
endif()
function(trireme_library name)
  cmake_parse_arguments(ARG "COMPUTES;COLD;STEERS" "" "SOURCES;APART;DEPENDS;PRIVATE" ${ARGN})
  add_library(trireme_${name} STATIC ${ARG_SOURCES} ${ARG_APART})
  add_library(trireme::${name} ALIAS trireme_${name})
  set_target_properties(trireme_${name} PROPERTIES TRIREME_COLD ${ARG_COLD})
  target_link_libraries(trireme_${name} PUBLIC trireme_flags)
  foreach(other ${ARG_DEPENDS})
    target_link_libraries(trireme_${name} PUBLIC trireme::${other})
  endforeach()
  target_link_libraries(trireme_${name} PRIVATE ${ARG_PRIVATE})
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    set_target_properties(trireme_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${TRIREME_FILES_AT_ONCE})
    set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
  if(TRIREME_PRECOMPILED)
    target_precompile_headers(trireme_${name} REUSE_FROM trireme_headers)
  endif()
  if(TRIREME_SANITIZE)
    if(ARG_COMPUTES)
      target_compile_options(trireme_${name} PRIVATE -O1)
    endif()
  elseif(ARG_COLD)
    target_compile_options(trireme_${name} PRIVATE $<$<CONFIG:Release>:$<IF:$<BOOL:${TRIREME_PORTABLE}>,-Os,-O1>>)
  elseif(ARG_STEERS)
    target_compile_options(trireme_${name} PRIVATE $<$<CONFIG:Release>:$<IF:$<BOOL:${TRIREME_PORTABLE}>,-Os,-O2>>)
  elseif(NOT ARG_COMPUTES)
    target_compile_options(trireme_${name} PRIVATE $<$<CONFIG:Release>:-O2>)
  endif()
endfunction()

# trireme_files(kernels [FOLDER ops] [EXCEPT engine.cc]): the sources of a folder where each file is an
# operation, so that a new one is named in no list of files. Elsewhere files are listed.
function(trireme_files variable)
  cmake_parse_arguments(ARG "" "FOLDER" "EXCEPT" ${ARGN})
  set(folder ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_FOLDER})
  file(GLOB found CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${folder}/*.cc)
  list(FILTER found EXCLUDE REGEX "_test\\.cc$")
  list(REMOVE_ITEM found ${ARG_EXCEPT})
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# trireme_check_library(engine_check ...): what tests of several folders call, with GoogleTest. There is
# none without tests.
function(trireme_check_library name)
  if(BUILD_TESTING)
    trireme_library(${name} ${ARGN})
    target_link_libraries(trireme_${name} PUBLIC GTest::gtest)
  endif()
endfunction()

# Half of a build's time were the tests' headers and what optimizing makes of their templates. What
# tests do themselves is watched for addresses and threads only.
if(BUILD_TESTING)
add_library(trireme_test_flags INTERFACE)
target_link_libraries(trireme_test_flags INTERFACE trireme_flags fmt::fmt GTest::gtest_main)
if(TRIREME_SANITIZE)
  target_compile_options(trireme_test_flags INTERFACE -fno-sanitize=undefined)
else()
  target_compile_options(trireme_test_flags INTERFACE -O0)
endif()
file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cc CONTENT "")
add_executable(trireme_test_headers ${CMAKE_CURRENT_BINARY_DIR}/test_headers.cc)
target_link_libraries(trireme_test_headers PRIVATE trireme_test_flags)
target_precompile_headers(trireme_test_headers PRIVATE
  <gtest/gtest.h> <fmt/core.h> <algorithm> <atomic> <chrono> <filesystem> <functional> <memory>
  <random> <span> <string> <thread> <vector>)
endif()

# trireme_test_program(NAME SOURCE libraries...)
function(trireme_test_program target source)
  add_executable(${target} ${source})
  target_link_libraries(${target} PRIVATE ${ARGN} trireme_test_flags)
  target_precompile_headers(${target} REUSE_FROM trireme_test_headers)
endfunction()

# The timeout of a test, from the seconds that it may take where nobody else computes. A hang is to be
# found, not a busy machine. What may take longest begins first, else it ends last and alone.
function(trireme_timeout test seconds)
  math(EXPR seconds "${seconds} * 4")
  if(TRIREME_SANITIZE)
    math(EXPR seconds "${seconds} * 5")
  endif()
  set_tests_properties(${test} PROPERTIES TIMEOUT ${seconds} COST ${seconds})
endfunction()

# All tests of a label, to build no more than what is run: the sanitizers' presets need it.
add_custom_target(tests_fast)
add_custom_target(tests_threads)

option(TRIREME_COLD_TESTS "build the tests of COLD libraries, too" ON)

# trireme_test(transport/collective/all_reduce [DEPENDS strategy] [TIMEOUT 60] [LABELS threads] [DEFINES A="b"]
# [PARTS 4]) builds src/transport/collective/all_reduce_test.cc, linked to the folder's own library. One that
# is LONG computes for so long that the sanitizers leave it out. One in PARTS runs as so many tests: whole, it
# would end last and alone. Where no step spends its time, one build's tests tell what another's would: ./test
# runs those of COLD libraries with a sanitizer only.
function(trireme_test path)
  if(NOT BUILD_TESTING)
    return()
  endif()
  cmake_parse_arguments(ARG "LONG" "TIMEOUT;PARTS" "DEPENDS;LABELS;PRIVATE;DEFINES" ${ARGN})
  string(REPLACE "/" "_" target ${path}_test)
  get_filename_component(folder ${path} DIRECTORY)
  string(REPLACE "/" "_" folder ${folder})
  get_target_property(cold trireme::${folder} TRIREME_COLD)
  if(cold AND NOT ARG_LONG AND NOT TRIREME_COLD_TESTS)
    return()
  endif()
  list(TRANSFORM ARG_DEPENDS PREPEND trireme::)
  trireme_test_program(${target} ${PROJECT_SOURCE_DIR}/src/${path}_test.cc
    trireme::${folder} ${ARG_DEPENDS} ${ARG_PRIVATE})
  target_compile_definitions(${target} PRIVATE ${ARG_DEFINES})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 60)
  endif()
  set(labels fast ${ARG_LABELS})
  if(ARG_LONG)
    set(labels long)
  endif()
  if(NOT ARG_PARTS)
    set(ARG_PARTS 1)
  endif()
  foreach(part RANGE 1 ${ARG_PARTS})
    set(name ${path})
    set(environment)
    if(ARG_PARTS GREATER 1)
      string(APPEND name /${part})
      math(EXPR index "${part} - 1")
      set(environment "GTEST_TOTAL_SHARDS=${ARG_PARTS};GTEST_SHARD_INDEX=${index}")
    endif()
    add_test(NAME ${name} COMMAND ${target})
    trireme_timeout(${name} ${ARG_TIMEOUT})
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" ENVIRONMENT "${environment}")
  endforeach()
  if(ARG_LONG)
    return()
  endif()
  foreach(label fast ${ARG_LABELS})
    add_dependencies(tests_${label} ${target})
  endforeach()
endfunction()
