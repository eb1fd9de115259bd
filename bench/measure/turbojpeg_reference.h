// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace millrace::cli {

/// T, what a loader is compared with: libjpeg-turbo's plain decode of whole images through its own
/// simple interface
/// (`tjDecompress2`, flags 0), with handle and buffer reused. Not for two threads at once.
class TurboJpegReference {
 public:
  TurboJpegReference();

  /// Decodes an image to RGB. Throws `Error` (`bad_record`) with libjpeg-turbo's text where it
  /// fails.
  void decode(std::span<const std::byte> encoded);

 private:
  struct Destroy {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Destroy> handle_;
  std::vector<unsigned char> pixels_;
};

}  // namespace millrace::cli
