# millrace_cuda_architectures(VARIABLE VERSION): sets VARIABLE to the default GPUs to build for, as
# CMake's CUDA_ARCHITECTURES. GPUs that an nvcc of this version does not support are left out.
function(millrace_cuda_architectures variable version)
  # Machine code for T4 (75), A100 (80), A10 (86), L4 (89) and H100/H200 (90). 90 also as PTX, which
  # drivers translate for later GPUs.
  set(architectures 75-real 80-real 86-real 89-real 90)
  if(version VERSION_GREATER_EQUAL 12.8)
    list(APPEND architectures 100-real 120-real)  # B200, RTX 50
  endif()
  set(${variable} ${architectures} PARENT_SCOPE)
endfunction()
