# A CUDA toolkit that is too old must be refused with a message. The toolkit is a fake: a compiler
# that prints its version, a header and a library.
#   cmake -DSOURCE_DIR=... -DWORK_DIR=... -DGENERATOR=... -DCXX=... -P old_cuda.cmake

set(toolkit ${WORK_DIR}/cuda)
file(REMOVE_RECURSE ${WORK_DIR})
file(WRITE ${toolkit}/bin/nvcc "#!/bin/sh
echo '#$ TOP=${toolkit}'
echo 'Cuda compilation tools, release 11.8, V11.8.89'
")
file(CHMOD ${toolkit}/bin/nvcc PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
file(WRITE ${toolkit}/include/cuda_runtime.h "#define CUDART_VERSION 11080\n")
file(WRITE ${toolkit}/lib64/libcudart.so "")
file(WRITE ${toolkit}/lib64/libcudart_static.a "")
file(WRITE ${toolkit}/lib64/libcudadevrt.a "")

execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE_DIR} -B ${WORK_DIR}/build -G ${GENERATOR}
                        -DCMAKE_CXX_COMPILER=${CXX} -DCUDAToolkit_ROOT=${toolkit}
                        -DMILLRACE_CUDA=ON
                RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
string(REGEX REPLACE "[ \n]+" " " text "${text}")
if(status EQUAL 0 OR NOT text MATCHES "CUDA 11.8.89 is too old; millrace needs CUDA 12 or later")
  message(FATAL_ERROR "CUDA 11.8 is not refused with a sentence:\n${text}")
endif()
