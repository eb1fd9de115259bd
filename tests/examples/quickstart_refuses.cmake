# A wrong FOLDER ends SCRIPT at once, before anything is installed or built.
foreach(folder IN ITEMS /no/such/folder ${CMAKE_CURRENT_LIST_FILE})
  execute_process(COMMAND bash ${SCRIPT} ${folder} RESULT_VARIABLE result OUTPUT_VARIABLE output
                  ERROR_VARIABLE error TIMEOUT 60)
  if(NOT result EQUAL 1 OR NOT output STREQUAL "" OR NOT error MATCHES "${folder}")
    message(FATAL_ERROR
            "quickstart.sh ${folder} ended with ${result}, said '${output}' and '${error}'")
  endif()
endforeach()
