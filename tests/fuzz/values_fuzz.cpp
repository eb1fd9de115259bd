// SPDX-License-Identifier: Apache-2.0
//
// Any bytes as values stored by other programs. The first byte selects the format.
#include <cstdint>
#include <fstream>
#include <string>

#include "fuzz/fuzz_seeds.h"
#include "loader/dataset/values/read_anything.h"

namespace {

template <std::size_t size>
void write_seed(const std::filesystem::path& path, const char (&bytes)[size]) {
  std::ofstream(path, std::ios::binary).write(bytes, size - 1);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  millrace::testing::write_seeds_if_asked(*argc, *argv, [](const std::filesystem::path& folder) {
    write_seed(folder / "pickle5",
               "\0\x80\x05\x95\x12\0\0\0\0\0\0\0C\x05\xff\xd8"
               "abc\x94K\x05\x8c\x01"
               "a\x87\x94.");
    write_seed(folder / "pickle2",
               "\0\x80\x02}q\0(U\x05imageq\x01T\x03\0\0\0abcU\x05labelq\x02J"
               "\xff\xff\xff\xffG?\xf8\0\0\0\0\0\0\x8a\x01\x05u.");
    write_seed(folder / "pickle0",
               "\0(dp0\nS'image'\np1\nS'a\\x00'\np2\nsV\\u6f22\np3\nL5L\nsF1.5"
               "\nI01\ns(lp4\ng3\naaN0.");
    write_seed(folder / "pickle_list",
               "\0]\x94(\x96\x02\0\0\0\0\0\0\0ab\x8d\x01\0\0\0\0\0\0\0b\x88"
               "NX\x01\0\0\0c\x85\x85h\0"
               "02e.");
    write_seed(folder / "msgpack",
               "\1\x82\xa5image\xc5\0\x03"
               "abc\xa5label\x93\xd2\xff\xff\xff\xfe\xcb?\xf8\0\0\0\0\0\0\xc3");
    write_seed(folder / "msgpack_large",
               "\1\xdc\0\x03\xd9\x02"
               "ab\xdf\0\0\0\x01\x05\x90\xcf\0\0\0\0\0\0\0\1");
    write_seed(folder / "protobuf",
               "\2\x08\x96\x01\x12\x07testing\x19"
               "12345678\x25"
               "1234");
    write_seed(folder / "datum", "\3\x08\1\x10\1\x18\2\x22\2ab\x28\7");
    write_seed(folder / "datum_floats", "\3\x08\1\x10\1\x18\2\x32\4\0\0\0\0\x35\0\0\x80?\x28\7");
    write_seed(folder / "datum_image", "\3\x22\3\xff\xd8\xff\x28\7\x38\1");
    write_seed(folder / "tensors",
               "\4\x0a\7\x08\1\x10\4\x32\1a\x0a\4\x10\2\x20\7\x0a\x0c\x08\2\x10"
               "\1\x1a\x08\0\0\x80?\0\0\0@");
  });
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using millrace::testing::AnyReader;
  static AnyReader reader;
  if (size == 0 || data[0] >= AnyReader::kinds) return -1;  // such an input is not kept
  reader.read(data[0], std::as_bytes(std::span(data, size)).subspan(1));
  return 0;
}
