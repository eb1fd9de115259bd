#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests machine.py with a fake nvidia-smi and a fake lscpu."""
import json
import os
import pathlib
import subprocess
import sys
import unittest

from stand_ins import ScriptTest

MACHINE = pathlib.Path(__file__).resolve().parent.parent / "machine.py"


class MachineTest(ScriptTest):
    def facts(self, *arguments):
        done = subprocess.run([sys.executable, MACHINE, *arguments], capture_output=True, text=True,
                              env={**os.environ, "PATH": f"{self.programs}:{os.environ['PATH']}"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return json.loads(done.stdout)

    def test_all_is_told(self):
        self.stand_in("lscpu", """echo '{"lscpu": [
 {"field": "CPU(s):", "data": "16"}, {"field": "Vendor ID:", "data": "X", "children": [
   {"field": "Model name:", "data": "A processor", "children": [
     {"field": "Thread(s) per core:", "data": "2"}, {"field": "CPU max MHz:", "data": null}]}]},
 {"field": "L3 cache:", "data": "110100480 (1 instance)"}]}'""")
        facts = self.facts("--data", self.dataset)
        self.assertEqual(facts["gpu"]["name"], "NVIDIA H200")
        self.assertEqual(facts["gpu"]["pcie.link.width.max"], "5")
        self.assertEqual((facts["cpu"]["model"], facts["cpu"]["threads_per_core"]),
                         ("A processor", 2))
        self.assertEqual(facts["cpu"]["l3_bytes"], 110100480)
        self.assertEqual(facts["cpu"]["usable"], len(os.sched_getaffinity(0)))
        self.assertEqual(facts["data_bytes"], 1 << 20)

    def test_a_folder_of_data(self):
        self.assertGreater(self.facts("--data", self.folder)["data_bytes"], 1 << 20)
        self.assertIsNone(self.facts("--data", self.folder / "none")["data_bytes"])

    def test_a_field_that_the_driver_does_not_know(self):
        known = (self.programs / "nvidia-smi").read_text().split("\n", 1)[1]
        self.stand_in("nvidia-smi",
                      'case "$*" in *clocks.max.sm*) echo no field; exit 2 ;; esac\n' +
                      known)
        gpu = self.facts("--gpu-only")["gpu"]
        self.assertNotIn("clocks.current.sm", gpu)
        self.assertEqual(gpu["pcie.link.gen.max"], "5")

    def test_programs_that_tell_nothing(self):
        for body in ("exit 9", "echo '['", "sleep 60"):
            for name in ("nvidia-smi", "lscpu"):
                self.stand_in(name, body)
            facts = self.facts()
            self.assertEqual(facts["gpu"], {})
            self.assertNotIn("l3_bytes", facts["cpu"])

    def test_values_that_are_not_there(self):
        self.stand_in("nvidia-smi", "echo '[N/A], [Not Supported], 5'")
        self.assertEqual(self.facts("--gpu-only")["gpu"].get("memory.total"), "5")
        self.assertNotIn("name", self.facts("--gpu-only")["gpu"])


if __name__ == "__main__":
    unittest.main()
