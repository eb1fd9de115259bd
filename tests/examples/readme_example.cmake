# Runs README's example on DATASET, which has 100 records, and on a file that does not exist.
execute_process(COMMAND ${PROGRAM} ${DATASET} OUTPUT_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
message(STATUS "${output}")
if(NOT output MATCHES "^2 batches, 100 samples, mean ([0-9.]+)\n.+\n$")
  message(FATAL_ERROR "That is not what two batches of 100 samples look like")
endif()
if(NOT (CMAKE_MATCH_1 GREATER 30 AND CMAKE_MATCH_1 LESS 225))
  message(FATAL_ERROR "The mean pixel of pictures is not ${CMAKE_MATCH_1}")
endif()

execute_process(COMMAND ${PROGRAM} ${DATASET}.missing RESULT_VARIABLE result ERROR_VARIABLE error)
if(NOT result EQUAL 1 OR NOT error MATCHES "\\.missing")
  message(FATAL_ERROR "A missing dataset ended with ${result}: ${error}")
endif()
