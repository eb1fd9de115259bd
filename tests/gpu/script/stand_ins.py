# SPDX-License-Identifier: Apache-2.0
"""Fakes of the programs of a machine with a GPU, and a base class of tests that run run.sh."""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parent.parent / "run.sh"
sys.path.insert(0, str(RUN.parent))
import cost_model  # pylint: disable=wrong-import-position  # beside run.sh
TESTS_PASSED = "echo '[  PASSED  ] 12 tests.'"
# The options that the programs below read.
OPTIONS = """
while [ $# -gt 0 ]; do
  case "$1" in
    --json) json=$2 ;;
    --workers) workers=$2 ;;
  esac
  shift
done
"""
BENCH = """
workers=${workers:-8}
cat >"$json" <<END
{"device_idle_percent": 0.3, "idle_floor_percent": 0.1, "idle_by_synthetic_percent": 0.2,
 "h2d_gb_per_second": 54, "h2d_percent_of_plain": 99.3, "h2d_percent_of_plain_busy": 100.1,
 "h2d_percent_of_paced": 99.3, "h2d_percent_of_paced_busy": 99.7,
 "h2d_percent_of_paced_under_steps": 99.1,
 "h2d_percent_of_paced_malloc_host_under_steps": 99.2,
 "h2d_percent_of_paced_malloc_host": 99.4, "h2d_percent_of_paced_malloc_host_busy": 98.6,
 "h2d_percent_of_plain_malloc_host": 99.2, "h2d_percent_of_plain_malloc_host_busy": 99.9,
 "copy_hidden_percent": 99.9, "consumer_us_per_batch": {"mean": 7.5, "p50": 7, "p99": 12},
 "rss_growth_mb": 0.4, "device_memory_growth_mb": 0, "samples_per_second": $((workers * 300)),
 "ceiling": {"samples_per_second": $((workers * 300)),
             "reference_images_per_second": $((workers * 250))}, "seconds": 60}
END
"""
# Fake output of nvidia-smi: a line for each GPU, of which this machine has two.
NVIDIA_SMI = """
gpus=2
for argument in "$@"; do
  case "$argument" in
    --query-gpu=*) IFS=, read -ra fields <<<"${argument#*=}" ;;
    --id=0) gpus=1 ;;
  esac
done
for ((gpu = 0; gpu < gpus; gpu++)); do
  line=
  for field in "${fields[@]}"; do
    case "$field" in
      name) value='NVIDIA H200' ;;
      driver_version) value=580.1 ;;
      *) value=5 ;;
    esac
    line+="${line:+, }$value"
  done
  echo "$line"
done
"""
RESNET18 = OPTIONS + """
for feed in synthetic millrace synthetic; do
  echo '{"feed": "'$feed'", "images_per_second": 4000.5, "idle": 0.001}'
done >"$json"
"""
PYTHON = """
case "$1" in
  */python/resnet18.py) ;;
  -c) printf '/none\\n/none/torch/lib\\n'; exit ;;
  *) exec %s "$@" ;;
esac
""" % sys.executable + OPTIONS + """
for feed in synthetic millrace torchvision; do
  echo '{"feed": "'$feed'", "images_per_second": 3000}'
done >"$json"
"""
SANITIZER = """
while [[ $1 == --* ]]; do shift 2; done
"$@"
status=$?
echo '========= ERROR SUMMARY: 0 errors'
exit $status
"""
NCU = """
echo '==PROF== Connected to process 1'
echo '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"'
echo '"0","to_planes","gpu__time_duration.sum","us","40.5"'
"""
KERNELS = json.dumps({"benchmarks": [
    {"name": f"{kind}/256x{pixels}x{pixels}x3/{rest}/iterations:30/manual_time", "of_copy": 0.9,
     "of_bandwidth": 0.88}
    for kind, rest in (("Convert", "bfloat16/nchw/no_flips"), ("Mix", "mixup"))
    for pixels in (224, 299, 384, 518)] + [
    {"name": f"{form.benchmark}/224/64/iterations:30/manual_time",
     "samples_per_second": cost_model.predict(cost_model.read_counts(), "H200", name)[1]}
    for name, form in cost_model.FORMS.items()] + [
    {"name": "PinnedAllocation/device/256MiB", "ms_per_gib": 210},
    {"name": "LaunchLatency/memory_freed", "p50_us": 6, "p99_us": 9, "max_us": 40}]})
STAND_INS = {
    "nvidia-smi": NVIDIA_SMI,
    "nproc": "echo 16",
    "python3": PYTHON,
    "gpu_tests": TESTS_PASSED,
    "gpu_call_tests": TESTS_PASSED,
    "compute-sanitizer": SANITIZER,
    "ncu": NCU,
    "millrace_gpu_benchmarks": f"echo '{KERNELS}'",
    "millrace": OPTIONS + BENCH,
    "resnet18": RESNET18,
    "train": "printf 'on cuda:0\\nepoch 0: loss 0.7, training accuracy 50.0%%\\n"
             "epoch 1: loss 0.2, training accuracy 95.0%%\\n'",
}


class ScriptTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.programs = self.folder / "programs"
        self.programs.mkdir()
        for name, body in STAND_INS.items():
            self.stand_in(name, body)
        self.dataset = self.folder / "photos.lmdb"
        self.dataset.write_bytes(bytes(1 << 20))
        self.photos = self.folder
        self.out = self.folder / "out"

    def stand_in(self, name, body):
        path = self.programs / name
        path.write_text(f"#!/usr/bin/env bash\n{body}\n")
        path.chmod(0o755)

    def begin(self, *arguments, **settings):
        # The folder is empty, so that no build of this machine is found.
        environment = {
            **os.environ, "MILLRACE_GPU_PROGRAMS": str(self.programs),
            "MILLRACE_BUILD": str(self.folder), **settings
        }
        environment.pop("OUT", None)
        return subprocess.Popen(["bash", RUN, *arguments], cwd=self.folder, env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                start_new_session=True)

    def run_script(self, *arguments, **settings):
        running = self.begin(*arguments, **settings)
        out, err = running.communicate()
        return subprocess.CompletedProcess(running.args, running.returncode, out, err)

    def kill(self, running):
        """Kills the script and all its processes without notice, as if the machine were lost."""
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if os.getsid(int(process.name)) == running.pid:
                    os.kill(int(process.name), signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        running.communicate()

    def read_results(self):
        """The verdicts by the names of their rows."""
        self.record = json.loads((self.out / "results.json").read_text())
        return {row["what"]: row for row in self.record["bars"]}

    def measure(self, *arguments, **settings):
        """Returns the script's status, output and verdicts. A busy machine gets more time."""
        settings.setdefault("MILLRACE_GPU_SLOWER", "10")
        done = self.run_script(self.dataset, "--photos", self.photos, "--out", self.out, *arguments,
                               **settings)
        self.assertEqual(done.stderr, "")
        rows = self.read_results()
        self.assertIn((self.out / "table.txt").read_text(), done.stdout)
        return done.returncode, done.stdout, rows
