# Configures combinations of the options below in WORK_DIR: each must find its dependencies and
# generate its build files. Eight of the sixteen contain all combinations of any three options.
#   cmake -DSOURCE_DIR=... -DWORK_DIR=... -DGENERATOR=... -DCXX=... -P options.cmake
# All use one build folder, so that the compiler is checked only once.

file(REMOVE_RECURSE ${WORK_DIR})
foreach(shared IN ITEMS 1 0)
  foreach(c IN ITEMS 1 0)
    foreach(bench IN ITEMS 1 0)
      math(EXPR torch "${shared} ^ ${c} ^ ${bench}")
      set(options -DBUILD_SHARED_LIBS=${shared} -DMILLRACE_C=${c} -DMILLRACE_BENCH=${bench}
          -DMILLRACE_TORCH=${torch})
      execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR} -G ${GENERATOR}
                              -DCMAKE_CXX_COMPILER=${CXX} -DMILLRACE_CUDA=OFF
                              -DMILLRACE_TESTS=OFF ${options}
                      RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
      list(JOIN options " " line)
      if(NOT status EQUAL 0)
        message(FATAL_ERROR "cmake ${line} fails:\n${text}")
      endif()
      message(STATUS "${line}")
    endforeach()
  endforeach()
endforeach()

# Tests use symbols that shared libraries hide. The combination must be refused with a message.
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR} -DBUILD_SHARED_LIBS=ON
                        -DMILLRACE_TESTS=ON
                RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(status EQUAL 0 OR NOT text MATCHES "set[ \n]+MILLRACE_TESTS[ \n]+to[ \n]+OFF")
  message(FATAL_ERROR "Tests of shared libraries are not refused:\n${text}")
endif()
