# cmake --install build/release [--prefix DIR]: the program, its plugins where it looks for them, man
# pages, completions, recipes, licenses. What the program prints is made by the one installed.
include(GNUInstallDirs)
install(TARGETS trireme RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET trireme_mpi_plugin)
  install(TARGETS trireme_mpi_plugin LIBRARY DESTINATION lib/trireme)
endif()
if(TARGET trireme_fabric_plugin)
  install(TARGETS trireme_fabric_plugin LIBRARY DESTINATION lib/trireme)
endif()
if(TARGET trireme_cuda_plugin)
  install(TARGETS trireme_cuda_plugin LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/trireme)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
if(NOT CMAKE_CROSSCOMPILING)
  install(CODE "
    set(root \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/scripts/write-printed-files
      \"\${root}/${CMAKE_INSTALL_BINDIR}/trireme\" \"\${root}\" COMMAND_ERROR_IS_FATAL ANY)")
endif()
