// SPDX-License-Identifier: Apache-2.0
#include "measure/turbojpeg_reference.h"

#include <millrace/error.h>
#include <turbojpeg.h>

namespace millrace::cli {

void TurboJpegReference::Destroy::operator()(void* handle) const { tjDestroy(handle); }

TurboJpegReference::TurboJpegReference() : handle_(tjInitDecompress()) {
  if (handle_ == nullptr) throw Error(ErrorCode::internal, "libjpeg-turbo gives no decompressor");
}

void TurboJpegReference::decode(std::span<const std::byte> encoded) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(encoded.data());
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colorspace = 0;
  if (tjDecompressHeader3(handle_.get(), bytes, encoded.size(), &width, &height, &subsampling,
                          &colorspace) != 0)
    throw Error(ErrorCode::bad_record, tjGetErrorStr2(handle_.get()));
  const std::size_t needed = static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3;
  if (pixels_.size() < needed) pixels_.resize(needed);
  if (tjDecompress2(handle_.get(), bytes, encoded.size(), pixels_.data(), width, 0, height,
                    TJPF_RGB, 0) != 0 &&
      tjGetErrorCode(handle_.get()) == TJERR_FATAL)
    throw Error(ErrorCode::bad_record, tjGetErrorStr2(handle_.get()));
}

}  // namespace millrace::cli
