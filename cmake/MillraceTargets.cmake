# Compiler settings of millrace's own targets.

set(millrace_warnings -Wall -Wextra -Wconversion)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  list(APPEND millrace_warnings -Wthread-safety)
elseif(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 14)
  # GCC 12 and 13 report overlaps and overflows in std::string's operator+ that do not exist (GCC
  # bugs 105651 and 105329).
  list(APPEND millrace_warnings -Wno-restrict
       "$<$<CONFIG:Release>:-Wno-stringop-overflow;-Wno-array-bounds>")
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # GCC 12's own AVX-512 intrinsics read a variable that they never set (GCC bug 105593), which
    # shows where all code is compiled for AVX-512, such as by -march=native.
    include(CheckCXXSourceCompiles)
    check_cxx_source_compiles("#ifndef __AVX512F__\n#error\n#endif\nint main() {}"
                              MILLRACE_COMPILED_FOR_AVX512)
    if(MILLRACE_COMPILED_FOR_AVX512)
      list(APPEND millrace_warnings -Wno-maybe-uninitialized -Wno-uninitialized)
    endif()
  endif()
endif()
if(CMAKE_UNITY_BUILD AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  # In joined sources GCC mistakes their unnamed namespaces for those of a header.
  list(APPEND millrace_warnings -Wno-subobject-linkage)
endif()
if(MILLRACE_WERROR)
  list(APPEND millrace_warnings -Werror)
endif()
# CUDA sources. CMake 3.25 does not know nvcc's option for C++20. Code that nvcc generates for the
# host's compiler does not pass -Wconversion.
set(millrace_cuda_options -std=c++20 -Xcompiler=-Wall,-Wextra)
if(MILLRACE_WERROR)
  list(APPEND millrace_cuda_options -Werror=all-warnings -Xcompiler=-Werror)
endif()

function(millrace_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${millrace_warnings}>"
                                           "$<$<COMPILE_LANGUAGE:CUDA>:${millrace_cuda_options}>")
  if(MILLRACE_SANITIZE)
    set(sanitizers -fsanitize=${MILLRACE_SANITIZE} -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${sanitizers}>")
    target_link_options(${target} PUBLIC -fsanitize=${MILLRACE_SANITIZE})
    get_target_property(type ${target} TYPE)
    if(type STREQUAL EXECUTABLE)
      target_sources(${target} PRIVATE ${millrace_SOURCE_DIR}/tests/sanitizers/defaults.cpp)
    endif()
  endif()
endfunction()

# Options for code that is not performance-critical. Most of it is templates of CLI11, nlohmann-json
# and fmt; with these options it compiles in two thirds of the time, with sanitizers in half of it.
if(MILLRACE_SANITIZE)
  set(millrace_quick_build -O0)
elseif(CMAKE_BUILD_TYPE STREQUAL Release)
  set(millrace_quick_build -O1)
endif()
function(millrace_compile_quickly target)
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${millrace_quick_build}>")
endfunction()

# Excludes sources from a unity build that Highway compiles once for each instruction set.
function(millrace_compile_for_each_target)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# Compiles the standard headers that most sources of a target include once for the target. Only
# these: template instantiations of other libraries' headers would be compiled again for each
# source. A unity build leaves few sources, which parse these headers in less time than that takes.
function(millrace_precompile_standard_headers target)
  if(CMAKE_UNITY_BUILD)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE <algorithm> <atomic> <chrono> <functional> <map>
                            <memory> <optional> <string> <thread> <vector>)
endfunction()

# millrace_library(NAME [STATIC] [EXPORT set] HEADERS header... SOURCES source...
# [QUICK source...]): the library of one folder, millrace::NAME, with its public headers (relative
# to include/) and its install rules. QUICK names sources that run once a file, a run or a batch;
# millrace_compile_quickly compiles them. Build the target all_verify_interface_header_sets to check
# that each header compiles alone.
function(millrace_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "STATIC" "EXPORT" "HEADERS;SOURCES;QUICK")
  list(TRANSFORM arg_HEADERS PREPEND include/)
  set(target millrace_${name})
  set(type "")
  if(arg_STATIC)
    set(type STATIC)
  endif()
  add_library(${target} ${type} ${arg_SOURCES})
  add_library(millrace::${name} ALIAS ${target})
  # Symbols that a header does not export are hidden (millrace/detail/export.h). Installed shared
  # libraries find each other in their own folder.
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} VERIFY_INTERFACE_HEADER_SETS ON
                        CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
                        VISIBILITY_INLINES_HIDDEN ON VERSION ${PROJECT_VERSION}
                        SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
                        INSTALL_RPATH "$ORIGIN" DEFINE_SYMBOL "")
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${arg_HEADERS})
  millrace_compile_options(${target})
  # Private headers are included with their room.
  target_include_directories(${target} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  set(export millrace-targets)
  if(arg_EXPORT)
    set(export ${arg_EXPORT})
  endif()
  install(TARGETS ${target} EXPORT ${export} FILE_SET HEADERS)
  if(arg_QUICK)
    # A target of its own, since a unity build compiles sources with own options one by one.
    set(quick ${target}_quick)
    add_library(${quick} OBJECT ${arg_QUICK})
    target_compile_features(${quick} PRIVATE cxx_std_20)
    set_target_properties(${quick} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON
                          CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
    target_include_directories(${quick} PRIVATE include ${CMAKE_CURRENT_SOURCE_DIR})
    target_compile_definitions(${quick} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_DEFINITIONS>)
    target_compile_options(${quick} PRIVATE $<TARGET_PROPERTY:${target},COMPILE_OPTIONS>)
    target_link_libraries(${quick} PRIVATE
      $<GENEX_EVAL:$<TARGET_PROPERTY:${target},LINK_LIBRARIES>>)
    millrace_compile_quickly(${quick})
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:${quick}>)
  endif()
endfunction()
