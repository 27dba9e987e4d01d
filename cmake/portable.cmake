# The toolchain of the presets portable and portable-aarch64: one file for glibc 2.17 and later.
# scripts/fetch-portable has put zig and unpacked packages of TRIREME_PORTABLE (x86_64, aarch64) into
# build/packages.
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES TRIREME_PORTABLE)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH TRIREME_PORTABLE_ROOT)
string(APPEND TRIREME_PORTABLE_ROOT /build/packages/${TRIREME_PORTABLE})
if(NOT EXISTS ${TRIREME_PORTABLE_ROOT}/complete)
  message(FATAL_ERROR "the packages of ${TRIREME_PORTABLE} are missing: scripts/fetch-portable ${TRIREME_PORTABLE}")
endif()

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${TRIREME_PORTABLE})
set(CMAKE_C_COMPILER ${TRIREME_PORTABLE_ROOT}/bin/cc)
set(CMAKE_CXX_COMPILER ${TRIREME_PORTABLE_ROOT}/bin/c++)
set(CMAKE_AR ${TRIREME_PORTABLE_ROOT}/bin/ar)
set(CMAKE_RANLIB ${TRIREME_PORTABLE_ROOT}/bin/ranlib)

# The machine's own headers and libraries are for another glibc.
set(CMAKE_FIND_ROOT_PATH ${TRIREME_PORTABLE_ROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()

# zig adds debug information and no position independence unless told. What is written in C are the
# MPI plugins, libraries that it refuses to link with -fPIE. Functions that nothing calls stay out,
# and so do tables for unwinding through those that throw nothing.
set(CMAKE_C_FLAGS_INIT "-g0")
set(CMAKE_CXX_FLAGS_INIT "-g0 -fPIE -ffunction-sections -fdata-sections -fno-unwind-tables")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-s -pie -Wl,--gc-sections")

# What the MPI plugins inside the program are compiled with (src/transport/mpi/CMakeLists.txt).
set(TRIREME_MPI_HEADERS
  openmpi=${TRIREME_PORTABLE_ROOT}/usr/lib/${TRIREME_PORTABLE}-linux-gnu/openmpi/include
  mpich=${TRIREME_PORTABLE_ROOT}/usr/include/${TRIREME_PORTABLE}-linux-gnu/mpich
  abi=${TRIREME_PORTABLE_ROOT}/../mpi-abi)
