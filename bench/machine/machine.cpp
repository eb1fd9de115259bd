// SPDX-License-Identifier: Apache-2.0
#include "machine/machine.h"

#include <hwloc.h>
#include <jpeglib.h>
#include <lmdb.h>
#include <sys/utsname.h>
#include <tbb/version.h>
#include <xxhash.h>

#include <cstdio>  // jpeglib.h needs it first
#include <opencv2/core/version.hpp>

#define MILLRACE_TEXT_OF(x) #x
#define MILLRACE_TEXT(x) MILLRACE_TEXT_OF(x)

namespace millrace::cli {
namespace {

std::string kernel_release() {
  utsname names{};
  return uname(&names) == 0 ? std::string(names.sysname) + " " + names.release : "unknown";
}

/// 0x20902 -> "2.9.2"
std::string hwloc_version() {
  const unsigned version = hwloc_get_api_version();
  return std::to_string(version >> 16) + "." + std::to_string(version >> 8 & 0xFF) + "." +
         std::to_string(version & 0xFF);
}

/// 801 -> "0.8.1"
std::string xxhash_version() {
  const unsigned version = XXH_versionNumber();
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

}  // namespace

Machine describe_machine(const Topology& topology) {
  Machine machine;
  static_cast<MachineIdentity&>(machine) = identify_machine(topology);
  machine.kernel = kernel_release();
  machine.compiler = __VERSION__;
  machine.commit = MILLRACE_COMMIT;
  int major = 0;
  int minor = 0;
  int patch = 0;
  mdb_version(&major, &minor, &patch);
  machine.libraries = {
      {"millrace", MILLRACE_VERSION},
      {"libjpeg-turbo", MILLRACE_TEXT(LIBJPEG_TURBO_VERSION)},
      {"opencv", CV_VERSION},
      {"onetbb", TBB_runtime_version()},
      {"lmdb", std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch)},
      {"hwloc", hwloc_version()},
      {"xxhash", xxhash_version()},
  };
  return machine;
}

}  // namespace millrace::cli
