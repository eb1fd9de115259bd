# What find_package(millrace) finds.
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
# It needs LibTorch, so those compile it who have that.
install(FILES gpu/include/millrace/torch.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/millrace)
install(FILES LICENSE TYPE DOC)
