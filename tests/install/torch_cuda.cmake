# Checks that a LibTorch for CUDA does not change the settings of millrace's own CUDA sources, and
# that they configure. The LibTorch is a fake: it changes the settings of all CUDA sources like
# PyPI's.
#   cmake -DSOURCE_DIR=... -DWORK_DIR=... -DGENERATOR=... -DCXX=... -P torch_cuda.cmake
# tests/torch_cuda.sh does this with PyPI's LibTorch.

file(REMOVE_RECURSE ${WORK_DIR})
file(WRITE ${WORK_DIR}/torch/share/cmake/Torch/TorchConfig.cmake [=[
enable_language(CUDA)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_ARCHITECTURES OFF)
set(arch 50)
if(TORCH_CUDA_ARCH_LIST)
  string(REPLACE "." "" arch ${TORCH_CUDA_ARCH_LIST})
endif()
string(APPEND CMAKE_CUDA_FLAGS " -gencode arch=compute_${arch},code=sm_${arch}")
message(WARNING "CMAKE_CUDA_ARCHITECTURES are ignored")
foreach(library IN ITEMS c10 torch_cpu c10_cuda torch)
  add_library(${library} INTERFACE IMPORTED)
endforeach()
set(TORCH_INCLUDE_DIRS ${CMAKE_CURRENT_LIST_DIR})
set(TORCH_CXX_FLAGS "-D_GLIBCXX_USE_CXX11_ABI=1")
set(TORCH_LIBRARIES torch)
]=])

function(configure source)
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${source} -B ${WORK_DIR}/build -G ${GENERATOR}
                          -DCMAKE_CXX_COMPILER=${CXX}
                          -DTorch_DIR=${WORK_DIR}/torch/share/cmake/Torch
                          -DCMAKE_EXPORT_COMPILE_COMMANDS=ON ${ARGN}
                  RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${source} does not configure:\n${text}")
  endif()
  set(text "${text}" PARENT_SCOPE)
endfunction()

configure(${SOURCE_DIR} -DMILLRACE_CUDA=ON -DMILLRACE_TORCH=ON -DMILLRACE_TESTS=OFF
          "-DCMAKE_CUDA_ARCHITECTURES=80-real\;90")
if(text MATCHES "are ignored")
  message(FATAL_ERROR "LibTorch's warning is shown, but these are not ignored:\n${text}")
endif()
file(STRINGS ${WORK_DIR}/build/compile_commands.json commands REGEX "\"command\"")
set(cuda_sources 0)
set(torch_sources 0)
foreach(command IN LISTS commands)
  if(command MATCHES "[.]cu(\\.o)?[\" ]")
    math(EXPR cuda_sources "${cuda_sources} + 1")
    if(command MATCHES "compute_50" OR NOT command MATCHES "compute_80.*compute_90")
      message(FATAL_ERROR "LibTorch chooses the GPUs of millrace's CUDA sources:\n${command}")
    endif()
  elseif(command MATCHES "-DMILLRACE_TORCH_CUDA")
    math(EXPR torch_sources "${torch_sources} + 1")
  endif()
endforeach()
if(cuda_sources LESS 2 OR torch_sources LESS 1)
  message(FATAL_ERROR "${cuda_sources} CUDA sources, ${torch_sources} with MILLRACE_TORCH_CUDA")
endif()

# A project that finds LibTorch in its own scope, before millrace, as gpu/README.md says. Its CUDA
# sources use C++20, like millrace's.
file(REMOVE_RECURSE ${WORK_DIR}/build)
file(WRITE ${WORK_DIR}/consumer/kernel.cu "")
file(WRITE ${WORK_DIR}/consumer/CMakeLists.txt "
cmake_minimum_required(VERSION 3.25)
project(consumer LANGUAGES CXX CUDA)
set(TORCH_CUDA_ARCH_LIST 8.0)
find_package(Torch REQUIRED)
add_library(millrace_loader INTERFACE)
add_library(millrace::loader ALIAS millrace_loader)
target_compile_features(millrace_loader INTERFACE cxx_std_20)
include(${SOURCE_DIR}/cmake/MillraceTorch.cmake)
add_library(consumer kernel.cu)
target_link_libraries(consumer millrace::torch)
")
configure(${WORK_DIR}/consumer -DCMAKE_CUDA_COMPILER=${NVCC})
