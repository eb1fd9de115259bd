# How millrace's own targets are compiled.

function(millrace_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion $<$<BOOL:${MILLRACE_WERROR}>:-Werror>
                         $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
  if(MILLRACE_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${MILLRACE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${MILLRACE_SANITIZE})
  endif()
endfunction()

# millrace_library(NAME HEADERS header... SOURCES source...): the library of one folder, millrace::NAME, with its public headers (relative to
# include/) and its install rules.
function(millrace_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "HEADERS;SOURCES")
  list(TRANSFORM arg_HEADERS PREPEND include/)
  set(target millrace_${name})
  add_library(${target} ${arg_SOURCES})
  add_library(millrace::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_sources(${target} PUBLIC FILE_SET HEADERS BASE_DIRS include FILES ${arg_HEADERS})
  millrace_compile_options(${target})
  install(TARGETS ${target} EXPORT millrace-targets FILE_SET HEADERS)
endfunction()
