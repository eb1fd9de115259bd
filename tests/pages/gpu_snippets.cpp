// SPDX-License-Identifier: Apache-2.0
// The C++ of gpu/README.md, compiled but not run.
#include <millrace/cuda_device.h>
#include <millrace/pipeline.h>

#include <memory>

namespace millrace::pages {

std::shared_ptr<Device> on_gpu(CUstream_st* own_stream, PipelineOptions& chosen) {
  auto device = std::make_shared<millrace::CudaDevice>(0);
  millrace::CudaStream stream(0, own_stream);  // the trainer's cudaStream_t
  millrace::PipelineOptions options{
      .batch_size = 256,
      .conversion = millrace::Conversion{.dtype = millrace::DType::bfloat16,
                                         .mean = millrace::Conversion::imagenet_mean,
                                         .std = millrace::Conversion::imagenet_std}};
  chosen = options;
  return device;
}

}  // namespace millrace::pages
