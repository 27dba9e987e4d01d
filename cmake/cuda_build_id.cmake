# Writes OUTPUT, a C++ file with the id of what crosses the border of the CUDA plugin: a hash of the
# headers that a dependency file HEADERS names, of those in the tree SOURCE, and of the COMPILER's
# words.
#   cmake -D SOURCE=DIR -D HEADERS=FILE.d -D COMPILER=WORDS -D OUTPUT=FILE -P cmake/cuda_build_id.cmake
cmake_minimum_required(VERSION 3.25)
file(READ "${HEADERS}" text)
string(REGEX REPLACE "^[^:]*:|\\\\\n" " " text "${text}")
string(REGEX MATCHALL "[^ \n]+" files "${text}")
list(SORT files)
set(words "${COMPILER}")
foreach(file ${files})
  cmake_path(IS_PREFIX SOURCE "${file}" NORMALIZE ours)
  if(ours)
    file(SHA256 "${file}" hash)
    string(APPEND words " ${hash}")
  endif()
endforeach()
string(SHA256 id "${words}")
string(SUBSTRING ${id} 0 16 id)
file(WRITE "${OUTPUT}" "// Written by cmake/cuda_build_id.cmake.
#include \"engine/cuda/plugin.h\"

namespace trireme::cuda {

const char* BuildId() { return \"${id}\"; }

}  // namespace trireme::cuda
")
