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

# millrace_share_ptx(TARGET): compiles TARGET's CUDA sources to PTX once for GPUs whose own PTX
# gives the same machine code: A100, A10 and L4, and B200 and RTX 50. Each GPU still gets machine
# code. With nvcc 13 it is the same to the byte for all kernels.
function(millrace_share_ptx target)
  get_target_property(architectures ${target} CUDA_ARCHITECTURES)
  foreach(gpus IN ITEMS "80;86;89" "100;120")
    set(codes "")
    set(shared "")
    foreach(gpu IN LISTS gpus)
      if("${gpu}-real" IN_LIST architectures)
        list(APPEND shared ${gpu}-real)
        list(APPEND codes sm_${gpu})
      endif()
    endforeach()
    list(LENGTH codes count)
    if(count GREATER 1)
      list(REMOVE_ITEM architectures ${shared})
      list(GET codes 0 first)
      string(REPLACE sm_ compute_ ptx ${first})
      list(JOIN codes "," codes)
      target_compile_options(${target} PRIVATE
        "$<$<COMPILE_LANGUAGE:CUDA>:--generate-code=arch=${ptx},code=[${codes}]>")
    endif()
  endforeach()
  if(NOT architectures)
    set(architectures OFF)  # nothing beside the options above
  endif()
  set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${architectures}")
endfunction()
