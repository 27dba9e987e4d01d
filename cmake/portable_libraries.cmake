# The libraries of a portable build, under the names that find_package gives them elsewhere: Debian's
# static ones where they are plain C, headers, and Highway from its sources. Debian's C++ libraries
# are for another standard library.
set(headers ${TRIREME_PORTABLE_ROOT}/usr/include)
set(archives ${TRIREME_PORTABLE_ROOT}/usr/lib/${TRIREME_PORTABLE}-linux-gnu)

# portable_library(PNG::PNG [ARCHIVE libpng16.a] [DEFINES A=1] [DEPENDS ZLIB::ZLIB])
function(portable_library name)
  cmake_parse_arguments(ARG "" "ARCHIVE" "DEFINES;DEPENDS" ${ARGN})
  add_library(${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(${name} SYSTEM INTERFACE ${headers} ${headers}/${TRIREME_PORTABLE}-linux-gnu)
  target_compile_definitions(${name} INTERFACE ${ARG_DEFINES})
  if(ARG_ARCHIVE)
    target_link_libraries(${name} INTERFACE ${archives}/${ARG_ARCHIVE})
  endif()
  target_link_libraries(${name} INTERFACE ${ARG_DEPENDS})
endfunction()
portable_library(ZLIB::ZLIB ARCHIVE libz.a)
portable_library(JPEG::JPEG ARCHIVE libjpeg.a)
portable_library(PNG::PNG ARCHIVE libpng16.a DEPENDS ZLIB::ZLIB m)
portable_library(fmt::fmt DEFINES FMT_HEADER_ONLY=1)
portable_library(nlohmann_json::nlohmann_json)
portable_library(tomlplusplus::tomlplusplus DEFINES TOML_HEADER_ONLY=1)
set(ASIO_INCLUDE_DIR ${headers})

set(highway ${TRIREME_PORTABLE_ROOT}/highway)
add_library(portable_highway STATIC ${highway}/hwy/targets.cc ${highway}/hwy/per_target.cc
  ${highway}/hwy/aligned_allocator.cc)
target_include_directories(portable_highway SYSTEM BEFORE PRIVATE ${highway} INTERFACE ${headers})
target_compile_options(portable_highway PRIVATE -w)
# What old processors fall back to is what the usual build, by gcc 12, has: one float at a time, the same
# bits, and 0.2 MB less than four at a time.
target_compile_definitions(portable_highway PUBLIC HWY_BROKEN_EMU128=1)
add_library(hwy::hwy ALIAS portable_highway)

if(BUILD_TESTING)
  set(googletest ${TRIREME_PORTABLE_ROOT}/usr/src/googletest/googletest)
  foreach(name gtest gtest_main)
    string(REPLACE gtest_main src/gtest_main.cc file ${name})
    string(REGEX REPLACE "^gtest$" src/gtest-all.cc file ${file})
    add_library(portable_${name} STATIC ${googletest}/${file})
    target_include_directories(portable_${name} SYSTEM PUBLIC ${googletest}/include ${googletest})
    add_library(GTest::${name} ALIAS portable_${name})
  endforeach()
  target_link_libraries(portable_gtest_main PUBLIC portable_gtest)
endif()

# No path of the builder in the program: the same commit gives the same bytes in another folder.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)

# Each std::function without a table of virtual functions of its own: libc++ has this form, too, and
# none crosses into the part of it that is already compiled.
add_compile_definitions(_LIBCPP_ABI_OPTIMIZED_FUNCTION)
