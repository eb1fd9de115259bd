# Defines millrace::torch: <millrace/torch.h> with the LibTorch that find_package(Torch) found
# before. It links only what tensors need, because libtorch.so may depend on libraries that are not
# installed.
set(millrace_torch_problem "")
if(NOT TARGET torch_cpu)
  set(millrace_torch_problem "find_package(Torch) was not called before, or found none")
elseif(CMAKE_CXX_COMPILER_ID MATCHES Clang AND Torch_VERSION VERSION_LESS 2)
  set(millrace_torch_problem "as C++20 clang does not compile the headers of LibTorch 1")
elseif(TORCH_CXX_FLAGS MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
  set(millrace_torch_problem "this LibTorch has the strings of C++98, and millrace those of C++11")
endif()
# A LibTorch for CUDA requires the standard of CUDA sources, which is C++20 for millrace. A CMake
# that does not know nvcc's option for it would refuse them all.
if(CMAKE_CUDA_STANDARD_REQUIRED AND CMAKE_CUDA_COMPILER AND
   NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA_STANDARD_REQUIRED OFF)
endif()
if(NOT millrace_torch_problem AND NOT TARGET millrace::torch)
  add_library(millrace::torch INTERFACE IMPORTED GLOBAL)
  target_include_directories(millrace::torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(millrace::torch INTERFACE millrace::loader torch_cpu c10)
  separate_arguments(millrace_torch_options UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(millrace::torch INTERFACE ${millrace_torch_options})
  if(TARGET millrace::gpu AND TARGET c10_cuda AND NOT millrace_gpu_problem)
    target_link_libraries(millrace::torch INTERFACE millrace::gpu c10_cuda ${TORCH_LIBRARIES})
    target_compile_definitions(millrace::torch INTERFACE MILLRACE_TORCH_CUDA)
  endif()
endif()
