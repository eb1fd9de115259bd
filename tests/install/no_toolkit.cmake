# Uses an installed millrace with the component gpu on a machine without the CUDA toolkit. Its other
# components must be found, and the message about gpu must name the missing part.
#   cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DWORK_DIR=... -DGENERATOR=... -DCXX=... \
#         -P no_toolkit.cmake

set(prefix ${WORK_DIR}/prefix)
file(REMOVE_RECURSE ${WORK_DIR})
execute_process(COMMAND ${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix}
                COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)

# Adds the component gpu to an install without CUDA, and a runtime library that does not exist.
file(GLOB_RECURSE config ${prefix}/*/millrace-config.cmake)
file(READ ${config} text)
string(REPLACE "has_cuda OFF" "has_cuda ON" text "${text}")
string(REPLACE "cudart_static HINTS" "cudart_that_is_nowhere HINTS" text "${text}")
file(WRITE ${config} "${text}")
get_filename_component(folder ${config} DIRECTORY)
file(READ ${folder}/millrace-targets.cmake text)
if(NOT text MATCHES "add_library\\(millrace::gpu ")
  file(APPEND ${folder}/millrace-targets.cmake "
if(NOT TARGET millrace::gpu)
  add_library(millrace::gpu INTERFACE IMPORTED)
  set_property(TARGET millrace::gpu PROPERTY INTERFACE_LINK_LIBRARIES CUDA::cudart_static)
  set_property(TARGET millrace::millrace APPEND PROPERTY INTERFACE_LINK_LIBRARIES millrace::gpu)
endif()
")
endif()

# Configures a project that requests `components`, separated by commas.
function(configure components)
  string(REPLACE "," "_" name "${components}")
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR}/tests/install/no_toolkit
                          -B ${WORK_DIR}/build_${name} -G ${GENERATOR}
                          -DCMAKE_CXX_COMPILER=${CXX} -DCMAKE_PREFIX_PATH=${prefix}
                          -DCMAKE_DISABLE_FIND_PACKAGE_CUDAToolkit=ON
                          "-DCOMPONENTS=${components}"
                  RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  set(status ${status} PARENT_SCOPE)
  set(text "${text}" PARENT_SCOPE)
endfunction()

foreach(components IN ITEMS loader loader,decode,augment)
  configure("${components}")
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${components} needs the toolkit:\n${text}")
  endif()
endforeach()
foreach(components IN ITEMS gpu loader,gpu "")
  configure("${components}")
  set(sentence "component \"gpu\" needs CUDA's static runtime library \\(cudart_static\\)")
  if(status EQUAL 0 OR NOT text MATCHES "${sentence}")
    message(FATAL_ERROR "The message about \"${components}\" does not tell why:\n${text}")
  endif()
endforeach()
