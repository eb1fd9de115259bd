// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <millrace/error.h>
#include <millrace/machine.h>
#include <millrace/topology.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cgroup.h"
#include "runtime/pci_devices.h"
#include "support/affinity.h"
#include "support/sanitizers.h"
#include "support/small_run.h"
#include "support/temporary_folder.h"

namespace millrace {
namespace {

namespace fs = std::filesystem;
using ::testing::DoubleEq;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Optional;
using testing::own_cpus;
using testing::restrict_to;
using ::testing::SizeIs;
using testing::TemporaryFolder;

TEST(Topology, HasUsableNodesAndCores) {
  const Topology topology = read_topology();
  ASSERT_FALSE(topology.nodes.empty());
  std::set<int> cpus;
  std::size_t count = 0;
  for (const NumaNode& node : topology.nodes) {
    EXPECT_FALSE(node.cpus.empty()) << "node " << node.number;
    cpus.insert(node.cpus.begin(), node.cpus.end());
    count += node.cpus.size();
  }
  EXPECT_EQ(cpus.size(), count) << "a processor is of two nodes";
  EXPECT_TRUE(
      std::is_sorted(topology.nodes.begin(), topology.nodes.end(),
                     [](const NumaNode& a, const NumaNode& b) { return a.number < b.number; }));
  EXPECT_GE(topology.usable_cpus, 1U);
  EXPECT_LE(topology.usable_cpus, count);
  const std::vector<int> own = own_cpus();
  EXPECT_TRUE(std::includes(own.begin(), own.end(), cpus.begin(), cpus.end()))
      << "a processor that is not ours";
}

TEST(Topology, SeesFewerCoresInARestrictedProcess) {
  const std::vector<int> cpus = own_cpus();
  if (cpus.size() < 2) GTEST_SKIP() << "needs two processors";
  restrict_to({cpus.back()});
  // a child process has its parent's processors
  std::FILE* output = popen(MILLRACE_PRINT_TOPOLOGY, "r");
  restrict_to(cpus);
  ASSERT_NE(output, nullptr);
  unsigned cores = 0;
  unsigned counted = 0;
  unsigned workers = 0;
  EXPECT_EQ(std::fscanf(output, "%u %u %u", &cores, &counted, &workers), 3);
  EXPECT_EQ(pclose(output), 0);
  EXPECT_EQ(cores, 1U);
  EXPECT_EQ(counted, 1U);
  EXPECT_EQ(workers, 1U);
}

/// Makes the kernel refuse to report an affinity to the calling thread and the processes that it
/// starts.
bool refuse_affinity() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_sched_getaffinity, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

TEST(Topology, IsReadWhereASandboxRefusesTheAffinity) {
#if defined(MILLRACE_ASAN) || defined(MILLRACE_TSAN)
  GTEST_SKIP() << "the sanitizers ask for each thread's affinity, and end where they get none";
#endif
  bool refused = false;
  int code = -1;
  unsigned cores = 0;
  unsigned counted = 0;
  unsigned workers = 0;
  int numbers = 0;
  std::thread([&] {
    refused = refuse_affinity();
    if (!refused) return;
    std::FILE* output = popen("timeout 120 " MILLRACE_PRINT_TOPOLOGY, "r");
    if (output == nullptr) return;
    numbers = std::fscanf(output, "%u %u %u", &cores, &counted, &workers);
    code = pclose(output);
  }).join();
  if (!refused) GTEST_SKIP() << "the kernel takes no filter of system calls";
  EXPECT_EQ(code, 0);
  EXPECT_EQ(numbers, 3);
  EXPECT_EQ(counted, own_cpus().size());
  EXPECT_GE(cores, 1U);
  EXPECT_GE(workers, 1U);
}

TEST(Topology, SaysWhatRestrictsTheProcess) {
  const Topology topology = read_topology();
  EXPECT_FALSE(topology.synthetic);
  EXPECT_GE(topology.machine_cpus, topology.cpuset_cpus);
  EXPECT_GE(topology.cpuset_cpus, topology.affinity_cpus);
  EXPECT_EQ(topology.affinity_cpus, own_cpus().size());
  EXPECT_EQ(count_cpus(topology), topology.affinity_cpus);
}

TEST(Topology, NamesTheProcessors) {
  Topology topology = read_topology();
  std::ifstream cpuinfo("/proc/cpuinfo");
  std::string line;
  while (std::getline(cpuinfo, line) && !line.starts_with("model name")) continue;
  if (line.empty()) GTEST_SKIP() << "/proc/cpuinfo names no model";
  EXPECT_THAT(line, ::testing::EndsWith(": " + topology.cpu_model));
  EXPECT_EQ(identify_machine(topology).cpu, topology.cpu_model);
  topology.cpu_model = "abacus";
  EXPECT_EQ(identify_machine(topology).cpu, "abacus");
  EXPECT_EQ(synthetic_topology("core:2 pu:1").cpu_model, "unknown");
}

TEST(SyntheticTopology, HasTheNodesThatAreDescribed) {
  for (const unsigned nodes : {1U, 2U, 8U}) {
    const Topology topology = synthetic_topology("pack:" + std::to_string(nodes) +
                                                 " [numa(memory=1GB)] l3:1(size=32MB) core:4 pu:2");
    EXPECT_TRUE(topology.synthetic);
    EXPECT_EQ(topology.usable_cpus, 8 * nodes);
    EXPECT_EQ(topology.machine_cpus, 8 * nodes);
    ASSERT_EQ(topology.nodes.size(), nodes);
    for (unsigned number = 0; number < nodes; ++number) {
      const NumaNode& node = topology.nodes[number];
      EXPECT_EQ(node.number, static_cast<int>(number));
      EXPECT_THAT(node.cpus, SizeIs(8));
      EXPECT_EQ(node.cpus.front(), static_cast<int>(8 * number));
      EXPECT_THAT(node.physical_cores, SizeIs(4));
      EXPECT_THAT(node.physical_cores.front(), SizeIs(2));
      EXPECT_EQ(node.memory_bytes, 1'000'000'000U);
      ASSERT_THAT(node.caches, SizeIs(1));
      EXPECT_EQ(node.caches[0].level, 3U);
      EXPECT_EQ(node.caches[0].bytes, 32'000'000U);
      EXPECT_EQ(node.caches[0].count, 1U);
      EXPECT_EQ(node.caches[0].cpus_per_cache, 8U);
    }
  }
}

TEST(SyntheticTopology, CountsTheCachesOfEachNode) {
  const Topology topology =
      synthetic_topology("pack:2 [numa] l3:2(size=8MB) l2:4(size=1MB) core:1 pu:2");
  ASSERT_THAT(topology.nodes, SizeIs(2));
  ASSERT_THAT(topology.nodes[1].caches, SizeIs(2));
  EXPECT_EQ(topology.nodes[1].caches[0].count, 8U);
  EXPECT_EQ(topology.nodes[1].caches[0].cpus_per_cache, 2U);
  EXPECT_EQ(topology.nodes[1].caches[1].count, 2U);
  EXPECT_EQ(topology.nodes[1].caches[1].cpus_per_cache, 8U);
}

TEST(SyntheticTopology, GivesWorkersNoNodeOfMemoryAlone) {
  const Topology topology = synthetic_topology(
      "pack:2 [numa] [numa] core:2 pu:1");  // each package with two kinds of memory
  ASSERT_THAT(topology.nodes, SizeIs(2));
  EXPECT_EQ(topology.nodes[0].number, 0);
  EXPECT_EQ(topology.nodes[1].number, 2);
  EXPECT_THAT(topology.nodes[1].cpus, ElementsAre(2, 3));
  EXPECT_EQ(count_cpus(topology), 4U);
}

TEST(SyntheticTopology, RefusesWhatHwlocDoesNotUnderstand) {
  for (const char* description : {"", "core", "core:4", "pack:0 pu:1"}) {
    const Error error = testing::error_of([&] { (void)synthetic_topology(description); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("pack:2 [numa]"));
  }
}

TEST(SyntheticTopology, RefusesMoreProcessorsThanItsLimitHoweverTheyAreWritten) {
  for (const char* description :
       {"core:4000000 pu:1", "core:+4000000 pu:1", "core: 4000000 pu:1", "core:\t4000000 pu:1",
        "core:0x3d0900 pu:1", "core:017204400 pu:1", "core:-18446744073705551616 pu:1",
        "core:2pu:2000000", "core:2(indexes=0,1)2000000", "core:2(indexes=[) pu:2000000",
        "core:2\npu:2000000", "pack:300 core:300 pu:1", "(memory=1GB)core:+70000 pu:1",
        "core:-5 pu:1", "core:99999999999999999999 pu:1", "core:65537 pu:1"}) {
    const Error error = testing::error_of([&] { (void)synthetic_topology(description); });
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("has at most 65536 processors")) << description;
  }
}

TEST(SyntheticTopology, CountsAsHwlocDoes) {
  for (const char* description :
       {"core:4 pu:2", "core:+4 pu:0x2", "core:4pu:2", "2[numa(memory=1GB)]2(indexes=0,1,2,3)2",
        "  2 010", "(memory=1GB) 8 ", "core:4(indexes=2*2:1*2) pu:2"})
    EXPECT_EQ(synthetic_topology(description).machine_cpus,
              std::string(description) == "  2 010" ? 16U : 8U)
        << description;
}

TEST(CpuList, WritesRanges) {
  EXPECT_EQ(cpu_list({}), "");
  EXPECT_EQ(cpu_list({3}), "3");
  EXPECT_EQ(cpu_list({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
}

/// A root folder with made-up files.
class Root {
 public:
  const fs::path& path() const { return folder_.path(); }
  void write(const fs::path& file, const std::string& text) {
    fs::create_directories((folder_ / file).parent_path());
    std::ofstream(folder_ / file) << text;
  }
  void quota_v1(const fs::path& group, const std::string& quota,
                const std::string& period = "100000") {
    write("sys/fs/cgroup" / group / "cpu.cfs_quota_us", quota + "\n");
    write("sys/fs/cgroup" / group / "cpu.cfs_period_us", period + "\n");
  }
  /// A device on the PCI bus.
  void device(const std::string& address, const std::string& kind, const std::string& vendor,
              const std::string& node) {
    const fs::path folder = fs::path("sys/bus/pci/devices") / address;
    write(folder / "class", kind + "\n");
    write(folder / "vendor", vendor + "\n");
    write(folder / "device", "0x2335\n");
    write(folder / "numa_node", node + "\n");
  }

 private:
  TemporaryFolder folder_;
};

TEST(CgroupQuota, IsNoneWithoutOne) {
  Root root;
  EXPECT_EQ(cgroup_quota(root.path()), std::nullopt);
  root.write("proc/self/cgroup", "0::/a\n");
  root.write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_quota(root.path()), std::nullopt);
  root.write("proc/self/cgroup", "3:cpu,cpuacct:/a\n2:cpuset:/\nrubbish\n0::/\n");
  root.quota_v1("cpu,cpuacct/a", "-1");
  EXPECT_EQ(cgroup_quota(root.path()), std::nullopt);
}

TEST(CgroupQuota, OfVersion2IsTheSmallestOnTheWayUp) {
  Root root;
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  root.write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  EXPECT_THAT(cgroup_quota(root.path()), Optional(DoubleEq(1.5)));
  root.write("sys/fs/cgroup/a/b/cpu.max", "50000 50000\n");
  EXPECT_THAT(cgroup_quota(root.path()), Optional(DoubleEq(1)));
  root.write("sys/fs/cgroup/cpu.max",
             "20000 100000\n");  // a container's own group, mounted as the root
  EXPECT_THAT(cgroup_quota(root.path()), Optional(DoubleEq(0.2)));
}

TEST(CgroupMemory, IsTheSmallestLimitOfEitherVersion) {
  Root root;
  EXPECT_EQ(cgroup_memory(root.path()), std::nullopt);
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(cgroup_memory(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/a/memory.max", "3000000000\n");
  EXPECT_THAT(cgroup_memory(root.path()), Optional(3'000'000'000));
  root.write("sys/fs/cgroup/memory.max", "2000000000\n");
  EXPECT_THAT(cgroup_memory(root.path()), Optional(2'000'000'000));
  root.write("proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/a\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  root.write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(cgroup_memory(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/memory/m/memory.limit_in_bytes", "1000000000\n");
  EXPECT_THAT(cgroup_memory(root.path()), Optional(1'000'000'000));
}

TEST(CgroupQuota, OfVersion1IsTheSmallestOnTheWayUp) {
  for (const char* controllers : {"cpu", "cpu,cpuacct", "cpuacct,cpu"}) {
    Root root;
    root.write("proc/self/cgroup",
               std::string("4:memory:/m\n3:") + controllers + ":/a/b\n2:cpuset:/a/b\n");
    root.quota_v1(fs::path(controllers) / "a/b", "-1");
    root.quota_v1(fs::path(controllers) / "a", "400000");
    root.quota_v1("cpuset/a/b", "100000");
    EXPECT_THAT(cgroup_quota(root.path()), Optional(DoubleEq(4))) << controllers;
    root.quota_v1(fs::path(controllers) / "a/b", "100000", "50000");
    EXPECT_THAT(cgroup_quota(root.path()), Optional(DoubleEq(2))) << controllers;
  }
}

TEST(CgroupQuota, OfVersion1IsFoundInAContainer) {
  Root root;  // where the group's path is the host's, and the group is mounted as the root
  root.write("proc/self/cgroup", "3:cpu,cpuacct:/docker/0123\n0::/../..\n");
  root.quota_v1("cpu", "250000");
  EXPECT_THAT(cgroup_quota(root.path()), Optional(DoubleEq(2.5)));
}

TEST(PciDevices, AreNoneWithoutABus) {
  EXPECT_THAT(read_pci_devices(Root().path(), nullptr), IsEmpty());
}

TEST(PciDevices, AreTheGpusAndNicsWithTheirNodes) {
  Root root;
  root.device("0000:00:1f.0", "0x060100", "0x8086", "0");
  root.device("0000:03:00.0", "0x030000", "0x1a03", "0");
  root.device("0000:41:00.0", "0x030200", "0x10de", "1");
  root.device("0000:42:00.0", "0x020700", "0x15b3", "1");
  root.write("sys/bus/pci/devices/0000:42:00.0/net/eth2/mtu", "1500");
  root.write("sys/bus/pci/devices/0000:42:00.0/infiniband/mlx5_0/node_type", "1");
  root.device("0000:43:00.0", "0x020000", "0x1af4", "-1");
  root.write("sys/bus/pci/devices/0000:43:00.0/virtio2/net/eth0/mtu", "1500");
  const std::vector<PciDevice> devices = read_pci_devices(root.path(), nullptr);
  ASSERT_THAT(devices, SizeIs(4));

  EXPECT_EQ(devices[0].kind, PciDevice::Kind::gpu);
  EXPECT_EQ(devices[0].name, "1a03:2335");
  EXPECT_FALSE(devices[0].can_launch_kernels);
  EXPECT_EQ(devices[1].address, "0000:41:00.0");
  EXPECT_EQ(devices[1].node, 1);
  EXPECT_TRUE(devices[1].can_launch_kernels);
  EXPECT_EQ(devices[2].kind, PciDevice::Kind::nic);
  EXPECT_EQ(devices[2].name, "eth2, mlx5_0");
  EXPECT_EQ(devices[3].name, "eth0");
  EXPECT_EQ(devices[3].node, std::nullopt);
}

TEST(PciDevices, LaunchWhereTheDriverShowsThem) {
  Root root;
  root.device("0000:41:00.0", "0x030200", "0x10de", "0");
  root.device("0000:81:00.0", "0x030200", "0x10de", "1");
  root.write("proc/driver/nvidia/gpus/0000:81:00.0/information",
             "Model: \t\t NVIDIA H200\nIRQ:   \t\t 5\n");
  const std::vector<PciDevice> devices = read_pci_devices(root.path(), nullptr);
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_FALSE(devices[0].can_launch_kernels);
  EXPECT_TRUE(devices[1].can_launch_kernels);
  EXPECT_EQ(devices[1].name, "NVIDIA H200");
}

TEST(PciDevices, LaunchWhereCudaIsToldToSeeThem) {
  Root root;
  root.device("0000:01:00.0", "0x030000", "0x1a03", "0");
  for (const char* gpu : {"4", "5", "6"}) {
    const std::string address = std::string("0000:") + gpu + "1:00.0";
    root.device(address, "0x030200", "0x10de", "0");
    root.write("proc/driver/nvidia/gpus/" + address + "/information",
               std::string("GPU UUID: \t GPU-") + gpu + "44-55\n");
  }
  const auto seen = [&](const char* visible) {
    std::string launching;
    for (const PciDevice& device : read_pci_devices(root.path(), visible))
      if (device.can_launch_kernels) launching += device.address[5];
    return launching;
  };
  EXPECT_EQ(seen(nullptr), "456");
  EXPECT_EQ(seen("1"), "5");
  EXPECT_EQ(seen("2,0"), "46");
  EXPECT_EQ(seen("GPU-5"), "5");
  EXPECT_EQ(seen("GPU-644-55,0"), "46");
  EXPECT_EQ(seen(""), "");
  EXPECT_EQ(seen("-1"), "");
  EXPECT_EQ(seen("MIG-12"), "456") << "nothing is known of parts";
}

}  // namespace
}  // namespace millrace
