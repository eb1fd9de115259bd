#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bundle_test.py BUILD_DIR PHOTOS: makes a bundle of a build, and runs its programs without
the rest of the build."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

RUN = pathlib.Path(__file__).resolve().parent.parent / "run.sh"
BUILD = PHOTOS = None
MOST_BYTES = 58 << 20


def run(*command, **settings):
    env = {**os.environ, **settings}
    env.pop("PYTHONDONTWRITEBYTECODE", None)  # most machines do not set it
    return subprocess.run(command, env=env, capture_output=True, text=True)


class BundleTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.bundle = pathlib.Path(folder.name) / "bundle"
        cls.made = run("bash", RUN, "--bundle", cls.bundle, BUILD, PHOTOS)
        if cls.made.returncode != 0:
            raise AssertionError(cls.made.stderr)
        cls.size = sum(path.stat().st_size for path in cls.bundle.rglob("*"))
        cls.unpacked = pathlib.Path(folder.name) / "unpacked"
        cls.unpacked.mkdir()
        subprocess.run(["tar", "-xzf", cls.bundle / "programs.tar.gz", "-C", cls.unpacked],
                       check=True)

    def run_for_no_time(self, bundle):
        """Runs the script with a fake GPU and without time for steps. Returns the files it left."""
        with tempfile.TemporaryDirectory() as folder:
            smi = pathlib.Path(folder) / "nvidia-smi"
            smi.write_text("#!/bin/sh\necho A GPU, 1.2\n")
            smi.chmod(0o755)
            out = pathlib.Path(folder) / "out"
            result = run("bash", bundle / "run.sh", "--out", out, MILLRACE_GPU_PROGRAMS=folder,
                         MILLRACE_GPU_TIME="0")
            return result, os.listdir(out)

    def test_it_is_small(self):
        self.assertLess(self.size, MOST_BYTES)
        self.assertIn("photos.tar: ", self.made.stdout)

    def test_what_is_not_built_is_told(self):
        for name in ("train", "resnet18"):
            if not (self.unpacked / "bin" / name).exists():
                self.assertRegex(self.made.stderr, f"left out, since it is not built: .*/{name}\n")

    def test_its_script_finds_its_parts(self):
        result = run("bash", self.bundle / "run.sh", "--plan")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn(f"{self.bundle}/machine.py", result.stdout)
        for name in ("loader.py", "millrace/loader.py"):
            self.assertTrue((self.bundle / "python" / name).exists(), name)
        for name in self.bundle.glob("*.py"):
            self.assertEqual(run(sys.executable, "-B", name, "--help").returncode, 0, name)

    def test_it_leaves_the_systems_and_cudas_libraries(self):
        libraries = os.listdir(self.unpacked / "lib")
        self.assertTrue([name for name in libraries if name.startswith("libtbb.so")], libraries)
        for name in ("libc.so", "libstdc++", "libcuda.so", "libcublas", "libtorch", "libc10"):
            self.assertFalse([library for library in libraries if library.startswith(name)],
                             libraries)

    def test_its_programs_take_their_libraries_from_it(self):
        loaded = run("ldd", self.unpacked / "bin/millrace",
                     LD_LIBRARY_PATH=str(self.unpacked / "lib")).stdout
        paths = {line.split()[0]: line.split()[2] for line in loaded.splitlines() if "=>" in line}
        for name in os.listdir(self.unpacked / "lib"):
            if name in paths:
                self.assertEqual(paths[name], str(self.unpacked / "lib" / name))

    def test_it_reads_its_photographs(self):
        subprocess.run(["tar", "-xf", self.bundle / "photos.tar", "-C", self.unpacked], check=True)
        result = run(self.unpacked / "bin/millrace", "bench", self.unpacked / "photos",
                     "--batches", "2", "--warmup", "0", "--batch-size", "8", "--json", "-",
                     LD_LIBRARY_PATH=str(self.unpacked / "lib"))
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout)["samples"], 16)

    def test_it_says_where_there_is_no_gpu(self):
        with tempfile.TemporaryDirectory() as folder:
            none = pathlib.Path(folder) / "nvidia-smi"
            none.write_text("#!/bin/sh\nexit 9\n")
            none.chmod(0o755)
            result = run("bash", self.bundle / "run.sh", MILLRACE_GPU_PROGRAMS=folder)
        self.assertEqual((result.returncode, result.stdout, result.stderr),
                         (77, "no CUDA device\n", ""))

    def test_it_finds_its_programs_and_photographs(self):
        result, _ = self.run_for_no_time(self.bundle)
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        called = re.search(r"gemm_256 +20  (\S+)/bin/millrace bench (\S+)/photos.lmdb --device",
                           result.stdout)
        self.assertEqual(called.group(1), called.group(2))
        self.assertFalse(pathlib.Path(called.group(1)).exists(), "it is left behind")

    def test_its_folder_stays_as_it_is(self):
        """The folder may be sent again."""
        self.test_it_finds_its_programs_and_photographs()
        self.assertEqual(sum(path.stat().st_size for path in self.bundle.rglob("*")), self.size)

    def test_photographs_that_cannot_be_packed(self):
        damaged = self.unpacked.parent / "damaged"
        shutil.copytree(self.bundle, damaged)
        (damaged / "photos.tar").write_bytes(b"no tar" * 1000)
        result, files = self.run_for_no_time(damaged)
        self.assertIn("table.txt", files)
        self.assertIn("run.sh: not unpacked and packed: ", result.stderr)

    def test_it_is_not_made_over_another(self):
        again = run("bash", RUN, "--bundle", self.bundle, BUILD, PHOTOS)
        self.assertEqual(again.returncode, 1)
        self.assertIn("is there already", again.stderr)


if __name__ == "__main__":
    BUILD, PHOTOS = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1])
