#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests run.sh with programs that hang, crash or print nothing, and kills it at each step."""
import pathlib
import tarfile
import time
import unittest

from stand_ins import STAND_INS, ScriptTest


class FaultsTest(ScriptTest):
    def test_a_program_that_fails_does_not_end_the_run(self):
        self.stand_in("gpu_tests", "echo '[  FAILED  ] 1 test'; exit 1")
        code, out, rows = self.measure()
        self.assertEqual(code, 1)
        for what in ("tests on the device", "compute-sanitizer memcheck, kernels"):
            self.assertEqual(rows[what]["verdict"], "short")
        self.assertIn("ended with 1: [  FAILED  ] 1 test", rows["tests on the device"]["measured"])
        self.assertEqual(rows["train on CUDA"]["verdict"], "ok", out)

    def test_programs_that_hang_are_stopped(self):
        self.stand_in("compute-sanitizer", "sleep 60 & wait")
        self.stand_in("resnet18", "trap '' TERM; sleep 61 & while :; do wait; sleep 1; done")
        code, out, rows = self.measure("--quick", MILLRACE_GPU_LIMIT="6")
        self.assertEqual(code, 1)
        for what in ("ResNet-18 training, batches of 256", "compute-sanitizer memcheck, kernels"):
            self.assertIn("stopped after 6 s", rows[what]["measured"])
        status = {step["name"]: step["status"] for step in self.record["steps"]}
        self.assertEqual((status["memcheck"], status["resnet18_256"]), (124, 137))
        self.assertNotIn("not measured", rows["ResNet-18 training from Python"]["measured"], out)

    def test_what_a_step_leaves_running_is_ended(self):
        self.stand_in("train", STAND_INS["train"] +
                      f"; sleep 600 >/dev/null 2>&1 & echo $! >{self.folder}/left")
        self.measure()
        stat = pathlib.Path("/proc") / (self.folder / "left").read_text().strip() / "stat"
        self.assertTrue(not stat.exists() or ") Z " in stat.read_text())

    def test_programs_that_print_nothing(self):
        for name in STAND_INS:
            if name not in ("nvidia-smi", "nproc", "python3"):
                self.stand_in(name, "true")
        code, out, rows = self.measure()
        self.assertEqual(code, 1)
        self.assertEqual({step["status"] for step in self.record["steps"]}, {0})
        with_bars = {row["verdict"] for row in rows.values() if row["bar"]}
        self.assertEqual(with_bars, {"short"}, out)

    def test_programs_that_die(self):
        for name in STAND_INS:
            if name not in ("nvidia-smi", "nproc", "python3"):
                self.stand_in(name, "kill -SEGV $$")
        code, out, rows = self.measure()
        self.assertEqual(code, 1)
        self.assertIn("ended with 139", rows["train on CUDA"]["measured"])
        self.assertNotIn("ok", {row["verdict"] for row in rows.values()}, out)

    def test_programs_that_print_nonsense(self):
        for name, body in (("millrace_gpu_benchmarks", "echo '{\"benchmarks\": [1, {}]}'"),
                           ("ncu", "echo '\"ID\"'"), ("resnet18", "echo '[1, {\"feed\": 3}]'"),
                           ("millrace", "echo '[]'"), ("train", "head -c 1000 /dev/urandom")):
            self.stand_in(name, body)
        code, out, rows = self.measure()
        self.assertEqual(code, 1)
        self.assertEqual(rows["conversion kernel at 224 px"]["verdict"], "short", out)

    def test_a_program_that_prints_without_end(self):
        self.stand_in("train", "yes nonsense | head -c 9000000")
        self.measure()
        with tarfile.open(self.out / "raw.tar.gz") as archive:
            self.assertLessEqual(archive.getmember("raw/train.out").size, 1 << 20)

    def test_missing_programs_are_told(self):
        for name in ("millrace_gpu_benchmarks", "train", "resnet18"):
            (self.programs / name).unlink()
        code, out, rows = self.measure()
        self.assertEqual(code, 1)
        self.assertEqual(rows["train on CUDA"]["measured"],
                         "not measured: not run: there is no program train")
        self.assertEqual(rows["conversion kernel at 518 px"]["measured"],
                         "not measured: not run: there is no program millrace_gpu_benchmarks")

    def test_without_pytorch(self):
        self.stand_in("python3", STAND_INS["python3"].replace("/none/torch/lib", ""))
        code, out, rows = self.measure("--quick")
        self.assertEqual(code, 1)
        for what in ("ResNet-18 training, batches of 256", "ResNet-18 training from Python"):
            self.assertEqual(rows[what]["measured"], "not measured: not run: there is no PyTorch")

    def test_there_is_an_end_to_all_of_it(self):
        code, out, rows = self.measure(MILLRACE_GPU_TIME="0")
        self.assertEqual(code, 1)
        self.assertEqual(rows["train on CUDA"]["measured"],
                         "not measured: not run: 0 s are left")
        self.assertNotIn("ok", {row["verdict"] for row in rows.values()})

    def test_an_output_folder_that_is_gone(self):
        self.stand_in("gpu_tests", STAND_INS["gpu_tests"] + f"; rm -rf {self.out}")
        self.stand_in("train", STAND_INS["train"] + f"; mkdir -p {self.out}")
        done = self.run_script(self.dataset, "--out", self.out)
        self.assertIn("the results were not written", done.stderr)
        self.assertEqual(self.read_results()["train on CUDA"]["verdict"], "ok")

    def test_killed_at_each_step_it_leaves_the_steps_before(self):
        done = self.run_script("--plan", "--quick")
        names = [line.split()[0] for line in done.stdout.splitlines()[2:-1]]
        self.assertGreater(len(names), 8)
        # Each program runs normally, except in the current step, where it waits to be killed.
        steps = self.folder / "steps"
        for name in STAND_INS:
            if name not in ("nvidia-smi", "nproc"):
                (self.programs / name).rename(self.programs / f"{name}.real")
                self.stand_in(name, f"""
if [ -e {steps}/die ]; then
  count=$(cat {self.out}/results.json 2>/dev/null | grep -c '"status": [0-9]')
  case "{name} $*" in
    *steps.py* | *summarize.py* | 'python3 -c'* | *IsFoundHere*) ;;
    *) if [ "$count" -ge "$(cat {steps}/die)" ]; then touch {steps}/waits; sleep 100; fi ;;
  esac
fi
exec {self.programs}/{name}.real "$@" """)
        steps.mkdir()
        for at, name in enumerate(names):
            with self.subTest(name):
                (steps / "die").write_text(str(at))
                running = self.begin(self.dataset, "--photos", self.folder, "--quick", "--out",
                                     self.out)
                while not (steps / "waits").exists():
                    time.sleep(0.02)
                    self.assertIsNone(running.poll())
                self.kill(running)
                (steps / "waits").unlink()
                rows = self.read_results()
                status = {step["name"]: step["status"] for step in self.record["steps"]}
                self.assertEqual(list(status), names)
                self.assertEqual([status[step] for step in names[:at]], [0] * at)
                self.assertEqual({status[step] for step in names[at:]}, {None})
                self.assertIn("not run yet", (self.out / "table.txt").read_text())
                self.assertNotIn("not measured", rows["GPU"]["measured"] if at else "")
                with tarfile.open(self.out / "raw.tar.gz") as archive:
                    found = {member.name for member in archive.getmembers()}
                self.assertLessEqual({f"raw/{step}.out" for step in names[:at]}, found)
                for file in self.out.iterdir():
                    file.unlink()


if __name__ == "__main__":
    unittest.main()
