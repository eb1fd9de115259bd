// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <millrace/topology.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/run_program.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace testing;
using Json = nlohmann::json;
using Result = RunningProgram::Result;

Result topology(std::vector<std::string> more) {
  more.insert(more.begin(), {MILLRACE_COMMAND, "topology"});
  return run_program(more);
}

Json topology_json(std::vector<std::string> more) {
  more.insert(more.end(), {"--json", "-"});
  const Result result = topology(more);
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return Json::parse(result.out);
}

TEST(TopologyCommand, TellsOfThisMachine) {
  const TemporaryFolder folder;
  const Result result = topology({"--json", (folder / "machine.json").string()});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.err, "");
  EXPECT_THAT(result.out, AllOf(ContainsRegex("^this machine: [0-9]+ processor"),
                                ContainsRegex("\n  node 0 +[0-9]+ processor"), HasSubstr("\n  GPU"),
                                HasSubstr("\n  NIC"), HasSubstr("\nA pipeline takes "),
                                HasSubstr("\nbecause\n"), Not(HasSubstr("oversubscribed"))));
  const Json json = topology_json({});
  const Topology here = read_topology();
  EXPECT_EQ(json.at("cores"), here.usable_cpus);
  EXPECT_EQ(json.at("nodes").size(), here.nodes.size());
  EXPECT_EQ(json.at("nodes")[0].at("cpus"), here.nodes[0].cpus);
  EXPECT_EQ(json.at("gpus").size() + json.at("nics").size(), here.devices.size());
  EXPECT_EQ(json.at("synthetic"), false);
  const Json written = Json::parse(std::ifstream(folder / "machine.json"));
  EXPECT_EQ(written, json);
}

TEST(TopologyCommand, TellsOfAMadeUpMachine) {
  for (const unsigned nodes : {1U, 2U, 8U}) {
    const std::string machine =
        "pack:" + std::to_string(nodes) + " [numa(memory=64GiB)] l3:1(size=33554432) core:4 pu:2";
    const Result result = topology({"--synthetic", machine});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.out,
                HasSubstr("synthetic machine: " + std::to_string(8 * nodes) + " processors\n"));
    EXPECT_THAT(result.out,
                HasSubstr("  node 0            8 processors (0-7) of 4 cores, 64 GiB of memory\n"));
    EXPECT_THAT(result.out, HasSubstr("L3 1 x 32 MiB (8 processors each)\n"));
    EXPECT_THAT(result.out,
                HasSubstr("A pipeline takes " + std::to_string(8 * nodes) + " workers:\n"));
    const Json json = topology_json({"--synthetic", machine});
    EXPECT_EQ(json.at("nodes").size(), nodes);
    EXPECT_EQ(json.at("placement").at("workers"), 8 * nodes);
    EXPECT_EQ(json.at("placement").at("nodes").size(), nodes);
    EXPECT_EQ(json.at("placement").at("bound"), false);
    EXPECT_EQ(json.at("placement").at("warnings"), Json::array());
  }
}

TEST(TopologyCommand, PlacesARanksWorkers) {
  const std::vector<std::string> rank = {
      "--synthetic", "pack:2 [numa] core:6 pu:1", "--local-rank", "1", "--local-world", "3"};
  const Result result = topology(rank);
  EXPECT_THAT(
      result.out,
      HasSubstr("rank 1 of 3 on this host takes processors 4-5 of node 0, 6-7 of node 1\n"));
  const Json placement = topology_json(rank).at("placement");
  EXPECT_EQ(placement.at("workers"), 4);
  EXPECT_EQ(placement.at("nodes")[1].at("cpus"), (Json{6, 7}));
  EXPECT_EQ(placement.at("nodes")[1].at("workers"), 2);
}

TEST(TopologyCommand, WarnsOfOversubscription) {
  const Result result = topology({"--synthetic", "core:2 pu:2", "--workers", "5"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.out, HasSubstr("\nwarning: oversubscribed: 5 workers on 4 processors\n"));
}

TEST(TopologyCommand, LeavesCoresFree) {
  const Json placement =
      topology_json({"--synthetic", "core:4 pu:1", "--launch-cores", "1"}).at("placement");
  EXPECT_EQ(placement.at("workers"), 3);
  EXPECT_EQ(placement.at("launch_cores"), 1);
}

TEST(TopologyCommand, BoundsMadeUpMachines) {
  EXPECT_EQ(topology({"--synthetic", "pack:2 [numa(memory=99999999)] core:1024 pu:2"}).exit_code,
            0);
  for (const char* text : {"pack:1000 core:1000 pu:1000", "65537", "numa:2 core:16385 pu:2",
                           "pu:99999999999999999999", "256 256 2"}) {
    const Result result = topology({"--synthetic", text});
    EXPECT_EQ(result.exit_code, 2) << text;
    EXPECT_THAT(result.err, HasSubstr("has at most 65536 processors")) << text;
  }
}

// Without sysfs, as in some containers. HWLOC_HIDE_ERRORS=0 makes hwloc print all warnings.
TEST(TopologyCommand, KeepsHwlocSilent) {
  const auto without_sysfs = [](const std::string& command) {
    return run_program({"/usr/bin/unshare", "-rm", "/bin/sh", "-c",
                        "mount -t tmpfs none /sys && " + command, MILLRACE_COMMAND});
  };
  if (without_sysfs("true").exit_code != 0) GTEST_SKIP() << "no mounts can be made here";
  for (const char* hide : {"", "HWLOC_HIDE_ERRORS=0 "}) {
    const Result result = without_sysfs(hide + std::string("\"$0\" topology"));
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_EQ(result.err, "") << hide;
  }
}

TEST(TopologyCommand, RefusesWhatMakesNoSense) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> refused = {
      {{"--synthetic", "core:4"}, "is not a synthetic topology"},
      {{"--local-rank", "2", "--local-world", "2"}, "--local-rank 2 must be below --local-world 2"},
      {{"--local-rank", "0"}, "--local-world"},
      {{"--workers", "0"}, "--workers"}};
  for (const auto& [arguments, reason] : refused) {
    const Result result = topology(arguments);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(HasSubstr("millrace: "), HasSubstr(reason),
                                  HasSubstr("See millrace topology --help.")));
  }
  const Result unwritten = topology({"--json", "/nowhere/topology.json"});
  EXPECT_EQ(unwritten.exit_code, 1);
  EXPECT_THAT(unwritten.err, HasSubstr("millrace: /nowhere/topology.json: cannot be written"));
}

}  // namespace
}  // namespace millrace
