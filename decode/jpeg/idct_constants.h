// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::jpeg::idct {

/// The factors are scaled by 2^13; the first pass keeps 2 bits more than the samples have.
inline constexpr int scale_bits = 13;
inline constexpr int kept_bits = 2;
inline constexpr int first_shift = scale_bits - kept_bits;
inline constexpr int second_shift = scale_bits + kept_bits + 3;

/// The factors of jidctint, and their sums: each output is made of few products of pairs.
inline constexpr int f0_298 = 2446, f0_390 = 3196, f0_541 = 4433, f0_765 = 6270, f0_899 = 7373,
                     f1_175 = 9633, f1_501 = 12299, f1_847 = 15137, f1_961 = 16069, f2_053 = 16819,
                     f2_562 = 20995, f3_072 = 25172;

inline constexpr int even2_by_2 = f0_541, even2_by_6 = f0_541 - f1_847;
inline constexpr int even3_by_2 = f0_541 + f0_765, even3_by_6 = f0_541;
inline constexpr int turn3_by_73 = f1_175 - f1_961, turn3_by_51 = f1_175;
inline constexpr int turn4_by_73 = f1_175, turn4_by_51 = f1_175 - f0_390;
inline constexpr int odd0_by_7 = f0_298 - f0_899, odd0_by_1 = -f0_899;
inline constexpr int odd1_by_5 = f2_053 - f2_562, odd1_by_3 = -f2_562;
inline constexpr int odd2_by_5 = -f2_562, odd2_by_3 = f3_072 - f2_562;
inline constexpr int odd3_by_7 = -f0_899, odd3_by_1 = f1_501 - f0_899;

}  // namespace millrace::jpeg::idct
