// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace {

/// While one of these lives, OpenCV runs on its caller's thread alone; the last one restores its
/// thread count. OpenCV has one such setting per process, so this is counted in one place. May be
/// made and destroyed on any thread.
class OneOpenCvThread {
 public:
  OneOpenCvThread();
  ~OneOpenCvThread();
  OneOpenCvThread(const OneOpenCvThread&) = delete;
  OneOpenCvThread& operator=(const OneOpenCvThread&) = delete;
};

}  // namespace millrace
