# Package files for find_package(millrace).
include(CMakePackageConfigHelpers)
set(millrace_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/millrace)
configure_package_config_file(cmake/millrace-config.cmake.in millrace-config.cmake
                              INSTALL_DESTINATION ${millrace_config_dir})
write_basic_package_version_file(millrace-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/millrace-config.cmake
        ${CMAKE_CURRENT_BINARY_DIR}/millrace-config-version.cmake
              cmake/MillraceDependencies.cmake cmake/MillraceTorch.cmake
              DESTINATION ${millrace_config_dir})
install(EXPORT millrace-targets NAMESPACE millrace:: DESTINATION ${millrace_config_dir})
if(TARGET millrace_measure)
  install(EXPORT millrace-measure-targets NAMESPACE millrace:: DESTINATION ${millrace_config_dir})
endif()
# The header needs LibTorch; users who have LibTorch compile it.
install(FILES gpu/include/millrace/torch.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/millrace)
install(FILES LICENSE TYPE DOC)

# Files for pkg-config. Users of static libraries also link their dependencies.
set(millrace_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH millrace_pc_prefix /prefix/${millrace_pc_dir} /prefix)
string(REGEX REPLACE "/$" "" millrace_pc_prefix "${millrace_pc_prefix}")
set(millrace_pc_requires Requires)
if(BUILD_SHARED_LIBS)
  set(millrace_pc_requires Requires.private)
endif()
configure_file(cmake/millrace.pc.in millrace.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/millrace.pc DESTINATION ${millrace_pc_dir})
if(MILLRACE_C)
  configure_file(cmake/millrace-c.pc.in millrace-c.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/millrace-c.pc DESTINATION ${millrace_pc_dir})
endif()

# A Debian package of all installed files: cpack -G DEB --config build/release/CPackConfig.cmake.
# dpkg-shlibdeps finds the libraries of the command; it needs the program `file`.
find_program(MILLRACE_SHLIBDEPS dpkg-shlibdeps)
find_program(MILLRACE_FILE file)
mark_as_advanced(MILLRACE_SHLIBDEPS MILLRACE_FILE)
if(PROJECT_IS_TOP_LEVEL AND MILLRACE_SHLIBDEPS AND MILLRACE_FILE)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_CONTACT "the millrace developers")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
  # Packages for programs that link the libraries.
  set(CPACK_DEBIAN_PACKAGE_DEPENDS "libtbb-dev, liblmdb-dev, libhwloc-dev, \
libjpeg-dev, libpng-dev, libwebp-dev, libhwy-dev, libdlpack-dev, pkg-config")
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
  include(CPack)
endif()
