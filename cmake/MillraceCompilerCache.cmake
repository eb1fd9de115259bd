# Compiles through ccache. Builds of the same sources in different folders share its objects: paths
# in the project are seen as relative to it.
if(NOT MILLRACE_COMPILER_CACHE OR CMAKE_CXX_COMPILER_LAUNCHER)
  return()
endif()
find_program(MILLRACE_CCACHE ccache)
mark_as_advanced(MILLRACE_CCACHE)
if(NOT MILLRACE_CCACHE)
  return()
endif()
# ccache fails where it cannot write its folder.
set(millrace_try ${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/compiler_cache)
file(WRITE ${millrace_try}.cpp "int main() {}\n")
execute_process(COMMAND ${MILLRACE_CCACHE} ${CMAKE_CXX_COMPILER} -c ${millrace_try}.cpp
                        -o ${millrace_try}.o
                RESULT_VARIABLE millrace_result OUTPUT_QUIET ERROR_QUIET)
if(NOT millrace_result EQUAL 0)
  message(STATUS "ccache is not used: it cannot compile here")
  return()
endif()
# Precompiled headers need this slackness, and an option for each compiler.
set(CMAKE_CXX_COMPILER_LAUNCHER
    ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    ${MILLRACE_CCACHE})
add_compile_options("$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>"
                    "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>"
                    $<$<COMPILE_LANGUAGE:CXX>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.>)
