# Runs PROGRAM in WORK_DIR: the same seed gives the same pictures, another seed gives others, and a
# wrong call is refused.

function(make folder count seed)
  execute_process(COMMAND ${PROGRAM} ${WORK_DIR}/${folder} ${count} ${seed}
                  COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
make(first 100 1)
make(again 12 1)
make(other 12 2)

file(GLOB_RECURSE pictures ${WORK_DIR}/first/*.jpg)
list(LENGTH pictures count)
if(NOT count EQUAL 100)
  message(FATAL_ERROR "100 pictures were asked for, ${count} made")
endif()
file(GLOB_RECURSE pictures RELATIVE ${WORK_DIR}/again ${WORK_DIR}/again/*.jpg)
foreach(picture IN LISTS pictures)
  foreach(folder IN ITEMS first again other)
    file(SHA256 ${WORK_DIR}/${folder}/${picture} ${folder})
  endforeach()
  if(NOT first STREQUAL again)
    message(FATAL_ERROR "${picture} differs between two runs with one seed")
  endif()
  if(first STREQUAL other)
    message(FATAL_ERROR "${picture} is the same for two seeds")
  endif()
endforeach()

execute_process(COMMAND ${PROGRAM} RESULT_VARIABLE without_folder ERROR_VARIABLE usage)
execute_process(COMMAND ${PROGRAM} ${WORK_DIR}/bad many RESULT_VARIABLE bad_count ERROR_QUIET)
if(NOT without_folder EQUAL 2 OR NOT usage MATCHES "usage: " OR NOT bad_count EQUAL 2)
  message(FATAL_ERROR "A wrong call was not refused with the usage and exit code 2")
endif()
