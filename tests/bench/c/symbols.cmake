# Checks that libmillrace.so exports exactly the symbols in symbols.txt and in its headers. A
# change of the list is a change of the library's binary interface.
#   cmake -DLIBRARY=... -DHEADERS=... -DNM=... -P symbols.cmake
function(expect_symbols whose symbols)
  list(SORT symbols)
  if(NOT symbols STREQUAL listed)
    list(JOIN symbols "\n  " text)
    message(FATAL_ERROR "${whose} has other symbols than tests/bench/c/symbols.txt:\n  ${text}")
  endif()
endfunction()

file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/symbols.txt listed)
execute_process(COMMAND ${NM} -D --defined-only --format=posix ${LIBRARY} OUTPUT_VARIABLE shown
                COMMAND_ERROR_IS_FATAL ANY)
string(REGEX MATCHALL "[^\n]+ [TWVBDRuiU] [^\n]*" shown "${shown}")
list(TRANSFORM shown REPLACE "[@ ].*" "")
expect_symbols(${LIBRARY} "${shown}")

set(header "")
file(GLOB files ${HEADERS}/*.h)
foreach(file ${files})
  file(READ ${file} text)
  string(APPEND header "${text}")
endforeach()
string(REGEX REPLACE "/\\*([^*]|\\*[^/])*\\*/" "" header "${header}")
string(REGEX MATCHALL "MILLRACE_C_API[^(]*\\(" declared "${header}")
list(FILTER declared INCLUDE REGEX "millrace_")
list(TRANSFORM declared REPLACE ".*[ *\n](millrace_[a-z_]+)\\($" "\\1")
list(FILTER declared INCLUDE REGEX "^millrace_")
expect_symbols(${HEADERS} "${declared}")

find_program(READELF readelf REQUIRED)
execute_process(COMMAND ${READELF} -d ${LIBRARY} OUTPUT_VARIABLE dynamic
                COMMAND_ERROR_IS_FATAL ANY)
if(NOT dynamic MATCHES "soname: \\[libmillrace\\.so\\.[0-9]+\\.[0-9]+\\]")
  message(FATAL_ERROR "${LIBRARY} has no versioned SONAME:\n${dynamic}")
endif()
