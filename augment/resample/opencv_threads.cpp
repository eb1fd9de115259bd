// SPDX-License-Identifier: Apache-2.0
#include "resample/opencv_threads.h"

#include <mutex>
#include <opencv2/core/utility.hpp>

namespace millrace {
namespace {

struct Count {
  std::mutex mutex;
  int holders = 0;
  int threads_before = 0;
};

Count& count() {
  static Count the_count;
  return the_count;
}

}  // namespace

OneOpenCvThread::OneOpenCvThread() {
  Count& shared = count();
  const std::lock_guard lock(shared.mutex);
  if (shared.holders++ > 0) return;
  shared.threads_before = cv::getNumThreads();
  cv::setNumThreads(1);
}

OneOpenCvThread::~OneOpenCvThread() {
  Count& shared = count();
  const std::lock_guard lock(shared.mutex);
  if (--shared.holders == 0) cv::setNumThreads(shared.threads_before);
}

}  // namespace millrace
