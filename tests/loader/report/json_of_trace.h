// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/trace.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace millrace::testing {

using Json = nlohmann::json;

inline Json json_of(const Trace& trace) {
  std::ostringstream out;
  trace.write_json(out);
  return Json::parse(out.str());
}

}  // namespace millrace::testing
