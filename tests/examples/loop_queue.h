// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "perceptron_on_device.h"

/// A queue of perceptron_on_device.h that works at once, by plain loops.
struct LoopQueue {
  /// Implements BLAS' `sgemm` with alpha = 1: element (row, column) of a column-major matrix is at
  /// [row + column * ld].
  void multiply(const Gemm& gemm) const {
    for (int row = 0; row < gemm.m; ++row) {
      for (int column = 0; column < gemm.n; ++column) {
        float sum = 0;
        for (int i = 0; i < gemm.k; ++i)
          sum += (gemm.transpose_a ? gemm.a[i + row * gemm.lda] : gemm.a[row + i * gemm.lda]) *
                 (gemm.transpose_b ? gemm.b[column + i * gemm.ldb] : gemm.b[i + column * gemm.ldb]);
        float& element = gemm.c[row + column * gemm.ldc];
        element = gemm.beta == 0 ? sum : sum + gemm.beta * element;  // with 0, C is not read
      }
    }
  }

  /// Runs from the last to the first index: the order must not matter.
  template <typename Function>
  void each(int count, const Function& function) const {
    for (int index = count; index-- > 0;) function(index);
  }

  void zero(float* values, int count) const { std::fill_n(values, count, 0.0F); }
};
