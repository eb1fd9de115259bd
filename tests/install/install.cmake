# Installs the build in BUILD_DIR below WORK_DIR, then builds the consumer project and the examples
# in SOURCE_DIR against it and runs both.
#   cmake -DBUILD_DIR=... -DSOURCE_DIR=... -DWORK_DIR=... -DGENERATOR=... -DCXX=... -P install.cmake
# With -DSHARED=ON (and -DCUDA=ON or OFF) it builds shared libraries itself instead of using
# BUILD_DIR, and leaves out the examples. With -DCACHED=ON it builds them beside BUILD_DIR with the
# same options, so that the compiler cache has most of the objects.

function(run)
  list(JOIN ARGV " " line)
  message(STATUS "${line}")
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# Builds the project in the folder `name`, with further arguments of CMake.
function(build name)
  run(${CMAKE_COMMAND} -S ${SOURCE_DIR}/${name} -B ${WORK_DIR}/${name} -G ${GENERATOR}
      -DCMAKE_CXX_COMPILER=${CXX} "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wconversion -Werror"
      -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix ${ARGN})
  run(${CMAKE_COMMAND} --build ${WORK_DIR}/${name})
endfunction()

set(prefix ${WORK_DIR}/prefix)
# Without optimisation, and without what debuggers read.
set(quick_build -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS_DEBUG=)
file(REMOVE_RECURSE ${WORK_DIR})
if(SHARED)
  set(options ${quick_build} -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=48)
  set(shared_dir ${WORK_DIR}/build)
  if(CACHED)
    file(STRINGS ${BUILD_DIR}/CMakeCache.txt options
         REGEX "^(CMAKE_(BUILD_TYPE|CXX_FLAGS|UNITY_BUILD)[A-Z_]*|MILLRACE_WERROR):")
    list(TRANSFORM options PREPEND -D)
    # The cache knows paths relative to the build folder, so both folders have the same depth.
    set(shared_dir ${BUILD_DIR}_shared)
    file(REMOVE_RECURSE ${shared_dir})
  endif()
  set(BUILD_DIR ${shared_dir})
  run(${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${BUILD_DIR} -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${CXX}
      ${options} -DBUILD_SHARED_LIBS=ON -DCMAKE_CUDA_ARCHITECTURES=80-real
      -DMILLRACE_CUDA=${CUDA} -DMILLRACE_BENCH=ON -DMILLRACE_EXAMPLES=OFF -DMILLRACE_TESTS=OFF)
  run(${CMAKE_COMMAND} --build ${BUILD_DIR})
endif()
run(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${prefix})

# Installed files must not refer to the build folder.
file(GLOB_RECURSE config_files ${prefix}/*.cmake)
if(NOT config_files)
  message(FATAL_ERROR "No CMake files were installed below ${prefix}")
endif()
foreach(file IN LISTS config_files)
  file(STRINGS ${file} text)
  foreach(folder IN ITEMS ${SOURCE_DIR}/loader ${SOURCE_DIR}/cmake ${BUILD_DIR}/loader)
    string(FIND "${text}" "${folder}" found)
    if(NOT found EQUAL -1)
      message(FATAL_ERROR "${file} names ${folder}")
    endif()
  endforeach()
endforeach()

# Optimised, as a user compiles the public headers: then compilers warn of more.
build(tests/install/consumer -DCMAKE_BUILD_TYPE=Release)
run(${CMAKE_CTEST_COMMAND} --test-dir ${WORK_DIR}/tests/install/consumer --output-on-failure
    --no-tests=error)

if(SHARED)
  # Public symbols must be visible outside the libraries, private ones must not.
  find_program(nm nm REQUIRED)
  file(GLOB loader ${prefix}/lib*/libmillrace_loader.so ${prefix}/lib/*/libmillrace_loader.so)
  execute_process(COMMAND ${nm} -DC --defined-only ${loader} OUTPUT_VARIABLE symbols
                  COMMAND_ERROR_IS_FATAL ANY)
  foreach(name IN ITEMS millrace::Pipeline::state "typeinfo for millrace::Error")
    string(FIND "${symbols}" "${name}" found)
    if(found EQUAL -1)
      message(FATAL_ERROR "${loader} hides ${name}")
    endif()
  endforeach()
  run(${prefix}/bin/millrace --version)
  string(REGEX MATCH "[^\n]*(millrace::(Engine|SlotQueues|Permutation)::|nlohmann)[^\n]*" found
         "${symbols}")
  if(found)
    message(FATAL_ERROR "${loader} shows what is private:\n${found}")
  endif()
  return()
endif()

# Checks the number of shared libraries that a program loads, except libm; see loader/README.md.
function(expect_libraries program at_most)
  execute_process(COMMAND ldd ${WORK_DIR}/tests/install/consumer/${program}
                  OUTPUT_VARIABLE libraries COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "=>" found "${libraries}")
  string(REGEX MATCHALL "libm[.]so[^=]*=>" libm "${libraries}")
  list(LENGTH libm counted_aside)
  list(LENGTH found count)
  math(EXPR count "${count} - ${counted_aside}")
  if(count LESS 1 OR count GREATER at_most)
    message(FATAL_ERROR "${program} needs ${count} libraries, not up to ${at_most}:\n${libraries}")
  endif()
endfunction()
expect_libraries(consumer_loader 8)
expect_libraries(consumer_augment 13)
expect_libraries(consumer_pipeline 13)
expect_libraries(consumer_measure 13)
expect_libraries(consumer_c 14)

# Uses pkg-config, without CMake.
file(GLOB_RECURSE pc ${prefix}/*/millrace.pc)
get_filename_component(pc_dir ${pc} DIRECTORY)
set(ENV{PKG_CONFIG_PATH} ${pc_dir})
execute_process(COMMAND pkg-config --cflags --libs millrace OUTPUT_VARIABLE flags
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
run(${CXX} ${SOURCE_DIR}/tests/install/consumer/augment.cpp -o ${WORK_DIR}/by_pkg_config ${flags})
run(${WORK_DIR}/by_pkg_config)
execute_process(COMMAND pkg-config --cflags --libs millrace-c OUTPUT_VARIABLE flags
                OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
separate_arguments(flags UNIX_COMMAND "${flags}")
find_program(cc NAMES cc gcc clang REQUIRED)
run(${cc} -std=c11 ${SOURCE_DIR}/tests/bench/c/program.c -o ${WORK_DIR}/c_by_pkg_config ${flags}
    -Wl,-rpath,${pc_dir}/..)
run(${WORK_DIR}/c_by_pkg_config)

# The Debian package must have the same files.
find_program(dpkg_deb dpkg-deb)
if(dpkg_deb AND EXISTS ${BUILD_DIR}/CPackConfig.cmake)
  run(${CMAKE_CPACK_COMMAND} --config ${BUILD_DIR}/CPackConfig.cmake -B ${WORK_DIR}/deb)
  file(GLOB package ${WORK_DIR}/deb/*.deb)
  run(${dpkg_deb} -x ${package} ${WORK_DIR}/deb/root)
  file(GLOB_RECURSE in_prefix RELATIVE ${prefix} ${prefix}/*)
  file(GLOB_RECURSE in_package RELATIVE ${WORK_DIR}/deb/root/usr ${WORK_DIR}/deb/root/usr/*)
  if(NOT in_prefix STREQUAL in_package)
    message(FATAL_ERROR "${package} has other files:\n${in_package}\nnot\n${in_prefix}")
  endif()
  run(${WORK_DIR}/deb/root/usr/bin/millrace --version)
endif()

# The project's own build compiles the same sources optimised.
build(examples ${quick_build} -DCMAKE_CUDA_ARCHITECTURES=80-real)
run(${WORK_DIR}/examples/make_photos ${WORK_DIR}/photos 20)
run(${prefix}/bin/millrace pack ${WORK_DIR}/photos ${WORK_DIR}/photos.lmdb)
run(${WORK_DIR}/examples/readme_example ${WORK_DIR}/photos.lmdb)
