# libtrireme.a: all folders that trireme::library stands on in one archive, and what
# find_package(trireme) and pkg-config tell of it. Other programs link it, ours does not. A sanitizer's
# or a portable build is for no other program.
if(TRIREME_PORTABLE OR TRIREME_SANITIZE)
  return()
endif()

# Ours are put into the archive; of the others only the names remain.
function(trireme_collect target ours others)
  set(waiting ${target})
  set(own "")
  set(foreign "")
  while(waiting)
    list(POP_FRONT waiting next)
    get_target_property(aliased ${next} ALIASED_TARGET)
    if(aliased)
      set(next ${aliased})
    endif()
    get_target_property(type ${next} TYPE)
    if(NOT type STREQUAL "STATIC_LIBRARY" OR next IN_LIST own)
      continue()
    endif()
    list(APPEND own ${next})
    get_target_property(links ${next} LINK_LIBRARIES)
    foreach(link ${links})
      if(link MATCHES "^trireme(::|_)" AND TARGET ${link})
        list(APPEND waiting ${link})
      else()
        list(APPEND foreign ${link})
      endif()
    endforeach()
  endwhile()
  list(REMOVE_DUPLICATES foreign)
  set(${ours} ${own} PARENT_SCOPE)
  set(${others} ${foreign} PARENT_SCOPE)
endfunction()

trireme_collect(trireme_library ours others)
set(archives "")
foreach(each ${ours})
  list(APPEND archives $<TARGET_FILE:${each}>)
endforeach()
set(archive ${PROJECT_BINARY_DIR}/libtrireme.a)
add_custom_command(
  OUTPUT ${archive}
  COMMAND ${CMAKE_COMMAND} -DAR=${CMAKE_AR} -DOUTPUT=${archive} "-DARCHIVES=${archives}"
          "-DOBJECT=$<TARGET_OBJECTS:trireme_build_info_object>" -DINSTEAD_OF=build_unknown.cc.o
          -P ${PROJECT_SOURCE_DIR}/cmake/merge_archives.cmake
  DEPENDS ${ours} ${archives} trireme_build_info_object $<TARGET_OBJECTS:trireme_build_info_object>
          ${PROJECT_SOURCE_DIR}/cmake/merge_archives.cmake
  VERBATIM)
add_custom_target(trireme_archive ALL DEPENDS ${archive})

# What the archive needs of Debian's packages, in the words of CMake and of pkg-config. A library that
# no row names stops the configuration: whoever links the archive would miss it.
set(known
  "fmt::fmt|fmt|fmt"
  "hwy::hwy|hwy CONFIG|libhwy"
  "JPEG::JPEG|JPEG|libjpeg"
  "PNG::PNG|PNG|libpng"
  "ZLIB::ZLIB|ZLIB|zlib"
  "Threads::Threads|Threads|"
  "tomlplusplus::tomlplusplus|tomlplusplus|tomlplusplus"
  "nlohmann_json::nlohmann_json||")  # headers
set(TRIREME_FIND "")
set(TRIREME_LINKS ${CMAKE_DL_LIBS})
set(TRIREME_REQUIRES "")
foreach(other ${others})
  set(row "${known}")
  list(FILTER row INCLUDE REGEX "^${other}[|]")
  if(row)
    string(REPLACE "|" ";" row "${row}")
    list(GET row 1 package)
    list(GET row 2 module)
    if(package)
      string(APPEND TRIREME_FIND "find_dependency(${package})\n")
      list(APPEND TRIREME_LINKS ${other})
    endif()
    string(APPEND TRIREME_REQUIRES " ${module}")
  elseif(NOT other IN_LIST CMAKE_DL_LIBS)
    message(FATAL_ERROR "cmake/library.cmake does not know how others link ${other}; add a row for it")
  endif()
endforeach()
list(REMOVE_ITEM TRIREME_LINKS "")
string(REGEX REPLACE " +" " " TRIREME_REQUIRES "${TRIREME_REQUIRES}")

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/trireme)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/trireme-config.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/trireme-config.cmake INSTALL_DESTINATION ${package_folder}
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/trireme-config-version.cmake
  COMPATIBILITY SameMajorVersion)
file(RELATIVE_PATH TRIREME_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" TRIREME_PC_PREFIX "${TRIREME_PC_PREFIX}")
list(TRANSFORM CMAKE_DL_LIBS PREPEND -l OUTPUT_VARIABLE TRIREME_PC_DL)
configure_file(${PROJECT_SOURCE_DIR}/cmake/trireme.pc.in ${CMAKE_CURRENT_BINARY_DIR}/trireme.pc @ONLY)
install(FILES ${archive} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(FILES ${CMAKE_CURRENT_SOURCE_DIR}/trireme.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/trireme COMPONENT library)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/trireme-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/trireme-config-version.cmake
  DESTINATION ${package_folder} COMPONENT library)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/trireme.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
