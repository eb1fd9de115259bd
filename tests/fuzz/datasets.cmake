# Fuzzers for dataset files and lists of shards, by libFuzzer: a sanitizer build with clang has
# them. Each is a test that writes seeds and runs for a while; more by hand:
#   FUZZER --seeds SEEDS && FUZZER SEEDS -max_len=131072 -max_total_time=1800

set(MILLRACE_FUZZ_SECONDS 60 CACHE STRING "How long each fuzzer runs as a test")

# The readers' sources are compiled once more, so that libFuzzer sees which branches they take.
get_target_property(fuzz_sources millrace_loader SOURCES)
list(FILTER fuzz_sources INCLUDE REGEX "^(base|dataset)/")
list(TRANSFORM fuzz_sources PREPEND ${PROJECT_SOURCE_DIR}/loader/)
find_package(nlohmann_json REQUIRED)

add_library(fuzzed_datasets OBJECT ${fuzz_sources})
millrace_compile_options(fuzzed_datasets)
target_compile_definitions(fuzzed_datasets PRIVATE MILLRACE_VERSION="${PROJECT_VERSION}")
target_compile_options(fuzzed_datasets PRIVATE -fsanitize=fuzzer-no-link)
target_include_directories(fuzzed_datasets PRIVATE ${PROJECT_SOURCE_DIR}/loader
                           PUBLIC ${PROJECT_SOURCE_DIR}/loader/include)
target_link_libraries(fuzzed_datasets PUBLIC PkgConfig::LMDB PkgConfig::XXHASH Threads::Threads
                      nlohmann_json::nlohmann_json)

foreach(name dataset_fuzz shards_fuzz)
  add_executable(${name} ${CMAKE_CURRENT_LIST_DIR}/${name}.cpp)
  millrace_compile_options(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE fuzzed_datasets -fsanitize=fuzzer)
  set(seeds ${CMAKE_CURRENT_BINARY_DIR}/${name}_seeds)
  add_test(NAME fuzz.${name}.seeds COMMAND ${name} --seeds ${seeds})
  set_tests_properties(fuzz.${name}.seeds PROPERTIES FIXTURES_SETUP ${name}_seeds)
  add_test(NAME fuzz.${name} COMMAND ${name} ${seeds} -max_len=131072
           -max_total_time=${MILLRACE_FUZZ_SECONDS} -print_final_stats=1)
  set_tests_properties(fuzz.${name} PROPERTIES FIXTURES_REQUIRED ${name}_seeds TIMEOUT 600)
endforeach()
