# Runs PROGRAM, which must end with a report of its data race.
execute_process(COMMAND ${PROGRAM} RESULT_VARIABLE result OUTPUT_VARIABLE output
                ERROR_VARIABLE output TIMEOUT 60)
if(result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} ended well: its race was not reported.\n${output}")
endif()
if(NOT output MATCHES "WARNING: ThreadSanitizer: data race" OR NOT output MATCHES "RacingJob::run")
  message(FATAL_ERROR
          "${PROGRAM} failed (${result}), but not with a report of its race.\n${output}")
endif()
