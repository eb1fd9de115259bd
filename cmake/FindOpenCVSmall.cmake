# Finds only OpenCV's core and imgproc modules. Debian's packages of single modules have no CMake
# configuration, so the target is defined here. A full OpenCV installation has the same headers and
# libraries. OpenCV's core links LAPACK, BLAS, gfortran, GLX and X11 itself: 13 libraries that
# programs with millrace depend on. The static libraries would need fewer, but still GLX. In a
# program with its own OpenCV they would conflict with it.
#   OpenCVSmall::imgproc   imgproc and core
find_path(OpenCVSmall_INCLUDE_DIR opencv2/imgproc.hpp PATH_SUFFIXES opencv4)
find_library(OpenCVSmall_CORE_LIBRARY opencv_core)
find_library(OpenCVSmall_IMGPROC_LIBRARY opencv_imgproc)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(OpenCVSmall REQUIRED_VARS OpenCVSmall_INCLUDE_DIR
                                  OpenCVSmall_CORE_LIBRARY OpenCVSmall_IMGPROC_LIBRARY)
if(OpenCVSmall_FOUND AND NOT TARGET OpenCVSmall::imgproc)
  add_library(OpenCVSmall::core UNKNOWN IMPORTED)
  set_target_properties(OpenCVSmall::core PROPERTIES IMPORTED_LOCATION ${OpenCVSmall_CORE_LIBRARY}
                        INTERFACE_INCLUDE_DIRECTORIES ${OpenCVSmall_INCLUDE_DIR})
  add_library(OpenCVSmall::imgproc UNKNOWN IMPORTED)
  set_target_properties(OpenCVSmall::imgproc
                        PROPERTIES IMPORTED_LOCATION ${OpenCVSmall_IMGPROC_LIBRARY}
                        INTERFACE_LINK_LIBRARIES OpenCVSmall::core)
endif()
mark_as_advanced(OpenCVSmall_INCLUDE_DIR OpenCVSmall_CORE_LIBRARY OpenCVSmall_IMGPROC_LIBRARY)
