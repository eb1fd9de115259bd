// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace millrace::testing {

/// A text in COCO's format with these entries, which are separated by commas.
inline std::string coco_text(const std::string& images, const std::string& annotations,
                             const std::string& categories) {
  return R"({"info":{"year":2017},"images":[)" + images + R"(],"annotations":[)" + annotations +
         R"(],"categories":[)" + categories + "]}";
}

/// An image, its annotation and its category, each with further keys appended: ",\"a\":1".
inline std::string coco_image(const std::string& more = "") {
  return R"({"id":5,"file_name":"a.jpg")" + more + "}";
}
inline std::string coco_annotation(const std::string& more = "") {
  return R"({"segmentation":[[1,2.5,3],{"counts":[1,2],"size":[3,4]}],"image_id":5,)"
         R"("category_id":9,"bbox":[1,2,3,4])" +
         more + "}";
}
inline std::string coco_category(const std::string& more = "") {
  return R"({"id":9,"name":"cat")" + more + "}";
}

}  // namespace millrace::testing
