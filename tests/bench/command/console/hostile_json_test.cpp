// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/options_file.h>
#include <millrace/recipe.h>
#include <millrace/state.h>
#include <pthread.h>

#include <functional>

#include "command/dataset/pack_tar.h"
#include "support/foreign_lmdb.h"
#include "support/packs.h"
#include "support/sanitizers.h"
#include "support/tars.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::SizeIs;
using namespace testing;

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int time = 0; time < times; ++time) all += text;
  return all;
}

/// Sizes of long and wide values. Sanitizers are slow.
constexpr int many = 200'000 / one_in, long_text = 1'000'000 / one_in;

/// Values that are nested, long or wide.
std::vector<std::string> hostile_values() {
  std::vector<std::string> values;
  for (const int levels : {65, 10'000, 100'000}) {
    values.push_back(repeated("[", levels) + repeated("]", levels));
    values.push_back(repeated("{\"a\":", levels) + "1" + repeated("}", levels));
    values.push_back(repeated("[", levels));
  }
  std::string keys = "{\"0\":0", numbers = "[0", objects = "[0";
  for (int number = 1; number < many; ++number) {
    keys += ",\"" + std::to_string(number) + "\":0";
    numbers += ",0";
    objects += R"(,{"op":"resize"})";
  }
  const std::string text(long_text, 'x');
  values.insert(values.end(),
                {keys + "}", numbers + "]", objects + "]", '"' + text + '"', '"' + text,
                 "{\"" + text + "\":1}", std::string(long_text, '9'),
                 "0." + std::string(long_text, '9') + "e" + std::string(9, '9'),
                 repeated("é", 150'000 / one_in), '"' + repeated("é", 150'000 / one_in) + '"'});
  return values;
}

/// Texts with such a value at the top, under a key, and in place of a key.
std::vector<std::string> hostile_texts(const std::string& key, const std::string& others) {
  std::vector<std::string> texts;
  for (const std::string& value : hostile_values()) {
    texts.push_back(value);
    texts.push_back("{" + others + ",\"" + key + "\":" + value + "}");
    texts.push_back("{" + others + ",\"unknown\":" + value + "}");
    if (value[0] == '{') texts.push_back("{" + others + "," + value.substr(1));
  }
  return texts;
}

/// Runs on a stack as small as other programs' threads may have.
void on_small_stack(const std::function<void()>& work) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{512} << 10);
  pthread_t thread{};
  const auto run = [](void* argument) -> void* {
    (*static_cast<const std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&work)),
            0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

void expect_short_message(const std::string& text, const std::function<void()>& read) {
  on_small_stack([&] {
    try {
      read();
      ADD_FAILURE() << "was accepted: " << text.substr(0, 80);
    } catch (const Error& error) {
      EXPECT_THAT(std::string(error.what()), SizeIs(Le(400u))) << text.substr(0, 80);
    }
  });
}

TEST(HostileJson, States) {
  for (const char* key : {"position", "sampler"})
    for (const std::string& text : hostile_texts(key, R"("format":1,"seed":1)"))
      expect_short_message(text, [&] { (void)State::from_json(text, "state.json"); });
}

TEST(HostileJson, Recipes) {
  for (const char* key : {"output", "ops"})
    for (const std::string& text : hostile_texts(key, R"("other":1)"))
      expect_short_message(text, [&] { (void)Recipe::from_json(text, "recipe.json"); });
}

TEST(HostileJson, OptionsFiles) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "options.json";
  for (const char* key : {"options", "run", "tuned_for", "machine", "why"})
    for (const std::string& text : hostile_texts(key, R"("format":1)")) {
      write_text(path, text);
      expect_short_message(text, [&] {
        (void)load_options(path);
        if (key == std::string("why")) throw Error(ErrorCode::internal, "a text may be long");
      });
    }
}

TEST(HostileJson, ShardLists) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "a.lmdb";
  const std::string empty =
      R"("millrace_shards":1,"shards":[],"begun":"","complete":true,"plan":"","classes":[],)"
      R"("created_by":"","source":"","records":0)";
  for (const std::string& text : hostile_texts("fingerprint", empty)) {
    write_text(path, text);
    expect_short_message(text, [&] { (void)open_dataset(path); });
  }
  const std::string name(10'000, 'x');
  for (const std::string& text :
       {R"({"millrace_shards":1,"shards":[{"file":")" + name +
            R"(","records":1,"fingerprint":"0"}]})",
        R"({"millrace_shards":1,"shards":[{"file":"a","records":1,"fingerprint":")" + name +
            R"("}]})"}) {
    write_text(path, text);
    expect_short_message(text, [&] { (void)open_dataset(path); });
  }
}

TEST(HostileJson, DatasetDescriptions) {
  const TemporaryFolder folder;
  int number = 0;
  for (const std::string& text : hostile_texts(
           "fingerprint", R"("format":1,"complete":true,"records":9,"fields":["a"],"classes":[],)"
                          R"("created_by":"")")) {
    const std::filesystem::path path = folder / std::to_string(number++);
    make_foreign_lmdb(path, "meta", "description", text);
    expect_short_message(text, [&] { (void)open_dataset(path); });
    std::filesystem::remove(path);
  }
}

TEST(HostileJson, SamplesOfTars) {
  const TemporaryFolder folder;
  for (const std::string& text : hostile_texts("label", R"("other":1)")) {
    if (text.size() > 1 << 20) continue;
    TarFile tar;
    tar.add("a.jpg", "x");
    tar.add("a.json", text);
    tar.write(folder / "a.tar");
    on_small_stack([&] {
      const cli::Listing listing = cli::list_tars({folder / "a.tar"}, 100);
      ASSERT_THAT(listing.left_out, SizeIs(1)) << text.substr(0, 80);
      EXPECT_THAT(listing.left_out[0].reason, SizeIs(Le(400u)));
    });
  }
}

}  // namespace
}  // namespace millrace
