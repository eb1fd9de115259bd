# millrace::torch: <millrace/torch.h>, beside the LibTorch that find_package(Torch) found before. It
# links what tensors need and no more: libtorch.so may ask for libraries that are not there.
if(TARGET torch_cpu AND NOT TARGET millrace::torch)
  add_library(millrace::torch INTERFACE IMPORTED)
  target_include_directories(millrace::torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  target_link_libraries(millrace::torch INTERFACE millrace::loader torch_cpu c10)
  separate_arguments(millrace_torch_options UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(millrace::torch INTERFACE ${millrace_torch_options})
  if(TARGET millrace::gpu AND TARGET c10_cuda)
    target_link_libraries(millrace::torch INTERFACE millrace::gpu c10_cuda ${TORCH_LIBRARIES})
    target_compile_definitions(millrace::torch INTERFACE MILLRACE_TORCH_CUDA)
  endif()
endif()
