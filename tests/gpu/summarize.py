#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes of the folder of raw results that run.sh leaves one table (what was measured, what is asked
for, ok or short) and one JSON.

Ends with 0 when every step ran and nothing falls short, 1 otherwise. What was not measured is said,
with the reason: it counts as short.
"""
import argparse
import datetime
import json
import pathlib
import re
import sys

LOG_CHARACTERS = 6000  # of each output, from its end, in the JSON
AUTO_RUNS = ("auto_256", "auto_64")
EXTRAS = {
    "auto_256_parts": "4 parts", "auto_256_half": "half the workers", "step_200ms": "200 ms steps",
    "step_gemm_short": "small matrix products", "step_gemm": "matrix products"
}
SANITIZERS = ("memcheck", "racecheck", "initcheck")
# Growth in 3 minutes that is none: allocators keep some pages.
RSS_GROWTH_MB = 10
DEVICE_GROWTH_MB = 1
IMAGE_BYTES = 224 * 224 * 3  # of a sample in bench's default recipe


class Step:
    """One step of the plan: how it ended, and what it left."""

    def __init__(self, raw, name, status, seconds, limit, command):
        self.name, self.seconds, self.limit, self.command = name, int(seconds), int(limit), command
        self.status = int(status) if re.fullmatch(r"\d+", status) else None
        self.out = self._text(raw / f"{name}.out")
        self.err = self._text(raw / f"{name}.err")
        self.result = None
        self.trouble = self._trouble(status)
        text = self._text(raw / f"{name}.json")
        if text:
            try:
                self.result = json.loads(text)
            except ValueError:
                self.trouble = self.trouble or "its result is no JSON"

    @staticmethod
    def _text(path):
        return path.read_text(errors="replace") if path.exists() else ""

    @property
    def out_of_time(self):
        """Whether it is one that is good to know, and that there was no time for."""
        return self.name in EXTRAS and self.status is None and " s in all " in (self.trouble or "")

    def _trouble(self, status):
        """Why there is nothing to rely on, or None."""
        if self.status is None:
            return status
        if self.status in (124, 137):
            return f"stopped after {self.limit} s"
        if self.status != 0:
            said = (self.err.strip() or self.out.strip()).splitlines()
            return f"ended with {self.status}" + (f": {said[-1].strip()}" if said else "")
        return None

    def number(self, *keys):
        """A number of the result, by its keys; None where it has none."""
        value = self.result
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(value) if number else None

    def to_json(self):
        return {
            "name": self.name,
            "command": self.command,
            "status": self.status,
            "trouble": self.trouble,
            "seconds": self.seconds,
            "limit_seconds": self.limit,
            "result": self.result,
            "out": self.out[-LOG_CHARACTERS:],
            "err": self.err[-LOG_CHARACTERS:],
        }


def row(what, measured, bar, ok):
    """`ok` is True, False, or None for what has no bar and is only told."""
    return {
        "what": what, "measured": measured, "bar": bar,
        "verdict": {True: "ok", False: "short", None: "-"}[ok]
    }


def not_measured(what, bar, reason, has_bar=True):
    return row(what, f"not measured: {reason}", bar, False if has_bar else None)


class Table:
    def __init__(self, steps):
        self.steps = steps
        self.rows = []

    def step(self, name):
        """The step and why it cannot be used, or None for that."""
        step = self.steps.get(name)
        if step is None:
            return None, f"the plan has no step {name}"
        return step, step.trouble

    def value(self, what, name, keys, unit, bar_text, reaches):
        """A number of a result, and whether it reaches a bar; without one (`reaches` is None) it is
        only told."""
        step, trouble = self.step(name)
        number = None if trouble else step.number(*keys)
        if not trouble and number is None:
            trouble = f"the result has no {'.'.join(keys)}"
        if trouble:
            self.rows.append(not_measured(what, bar_text, trouble, reaches is not None))
        else:
            self.rows.append(
                row(what, f"{number:.3g}{unit}" if abs(number) < 100 else f"{number:.1f}{unit}",
                    bar_text,
                    reaches(number) if reaches else None))

    def tests(self, what, name):
        """A GoogleTest program: it ends well, and ran tests."""
        step, trouble = self.step(name)
        if trouble:
            self.rows.append(
                not_measured(what, "all pass", trouble)
                if step is None or step.status is None else row(what, trouble, "all pass", False))
            return
        passed = re.search(r"\[  PASSED  \] (\d+) test", step.out)
        skipped = re.search(r"\[  SKIPPED \] (\d+) test", step.out)
        count, missed = (int(found.group(1)) if found else 0 for found in (passed, skipped))
        text = f"{count} passed" + (f", {missed} skipped" if missed else "")
        # A few are for machines without a GPU; where most were skipped, they did not find this
        # one's.
        self.rows.append(row(what, text if count else "no test ran", "all pass", count > missed))

    def auto_runs(self):
        for name in AUTO_RUNS:
            step = self.steps.get(name)
            size = name.split("_")[1]
            where = f", batches of {size}"
            self.value("device idle, step auto" + where, name, ("device_idle_percent",), "%",
                       "< 1 (aim 0.5)", lambda n: n < 1)
            self.value("idle by synthetic input" + where, name, ("idle_by_synthetic_percent",),
                       "%", "< 1 (aim 0.5)", lambda n: n < 1)
            copied = int(size) * IMAGE_BYTES
            self.value(f"copies of plain ones', {copied / 2**20:.1f} MiB", name,
                       ("h2d_percent_of_plain",), "%", ">= 97 (aim 99)", lambda n: n >= 97)
            self.value("copies hidden under steps" + where, name, ("copy_hidden_percent",), "%",
                       ">= 99", lambda n: n >= 99)
            self.value("trainer's thread per batch" + where, name,
                       ("consumer_us_per_batch", "mean"), " us", "<= 20 (aim 10)",
                       lambda n: n <= 20)
            if step is not None and not step.trouble:
                self.value("copies" + where, name, ("h2d_gb_per_second",), " GB/s", "", None)

    def conversion(self):
        what, bar = "conversion of a copy on the device", ">= 0.8"
        step, trouble = self.step("conversion")
        has_result = not trouble and isinstance(step.result, dict)
        runs = step.result.get("benchmarks") if has_result else None
        told = [run for run in runs or [] if isinstance(run.get("of_copy"), (int, float))]
        failed = [run["name"] for run in runs or [] if run.get("error_occurred")]
        if trouble or failed or not told:
            reason = trouble or (f"{failed[0]} failed" if failed else "the result has no of_copy")
            self.rows.append(not_measured(what, bar, reason))
        else:
            worst = min(told, key=lambda run: run["of_copy"])
            self.rows.append(
                row(what, f"{worst['of_copy']:.3f} ({worst['name']}, the worst of {len(told)})",
                    bar, worst["of_copy"] >= 0.8))

    def scaling(self, cores):
        most = max([count for count in self.worker_counts() if count <= 16], default=0)
        what, bar = f"scaling from 1 to {most} workers", ">= 90% each"
        rates = {}
        for count in (1, most):
            step, trouble = self.step(f"scaling_{count}")
            rates[count] = None if trouble else step.number("samples_per_second")
            if not rates[count]:
                self.rows.append(
                    not_measured(what, bar, trouble or "the result has no samples_per_second"))
                return
        efficiency = 100 * rates[most] / (most * rates[1])
        measured = f"{efficiency:.1f}% ({rates[1]:.0f} -> {rates[most]:.0f} samples/s)"
        if most < 2:
            self.rows.append(not_measured(what, bar, f"the machine has {cores} core"))
            return
        self.rows.append(row(what, measured, bar, efficiency >= 90))
        for count in self.worker_counts():
            self.value(f"rate of {count} worker{'s' if count > 1 else ''}", f"scaling_{count}",
                       ("samples_per_second",), " samples/s", "", None)

    def worker_counts(self):
        return sorted(
            int(name.split("_")[1]) for name in self.steps if re.fullmatch(r"scaling_\d+", name))

    def train(self):
        what, bar = "train on CUDA", "loss falls to < 1/2"
        step, trouble = self.step("train")
        losses = re.findall(r"^epoch \d+: loss ([\d.]+)", step.out, re.M) if step else []
        losses = [float(loss) for loss in losses]
        accuracies = re.findall(r"training accuracy ([\d.]+)%", step.out) if step else []
        if trouble or len(losses) < 2 or not re.search(r"^on cuda:", step.out, re.M):
            self.rows.append(not_measured(what, bar, trouble or "its output has no epochs on cuda"))
        else:
            measured = (f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy {accuracies[-1]}%, "
                        f"{step.seconds} s")
            self.rows.append(row(what, measured, bar, losses[-1] < losses[0] / 2))

    def soak(self):
        self.value("memory grows in a soak", "soak", ("rss_growth_mb",), " MB",
                   f"<= {RSS_GROWTH_MB}", lambda n: n <= RSS_GROWTH_MB)
        self.value("device memory grows in a soak", "soak", ("device_memory_growth_mb",), " MB",
                   f"<= {DEVICE_GROWTH_MB}", lambda n: n <= DEVICE_GROWTH_MB)
        self.value("soak", "soak", ("seconds",), " s", ">= 150", lambda n: n >= 150)
        self.value("device idle in a soak", "soak", ("device_idle_percent",), "%", "", None)

    def others(self):
        """What has no bar; that it ran is asked for all the same, unless there was no time left."""
        for name, what in EXTRAS.items():
            step = self.steps.get(name)
            no_time = step is not None and step.out_of_time
            self.value(f"device idle, {what}", name, ("device_idle_percent",), "%",
                       "" if no_time else "runs", None if no_time else lambda n: True)
        self.value("first step on parts after", "auto_256_parts", ("first_step_ms", "parts"), " ms",
                   "", None)
        self.value("first step on whole batches after", "auto_256_parts",
                   ("first_step_ms", "whole"), " ms", "", None)

    def fill(self, cores):
        self.tests("tests on the device", "gpu_tests")
        self.tests("no blocking calls, as CUPTI sees them", "gpu_calls")
        for tool in SANITIZERS:
            self.tests(f"compute-sanitizer {tool}", tool)
        self.conversion()
        self.auto_runs()
        self.scaling(cores)
        self.train()
        self.soak()
        self.others()
        return self.rows


def read_steps(raw):
    lines = (raw / "steps.tsv").read_text().splitlines()
    return {fields[0]: Step(raw, *fields) for fields in (line.split("\t") for line in lines)}


def to_text(rows):
    headings = {"what": "what", "measured": "measured", "bar": "bar", "verdict": "verdict"}
    widths = {key: max(len(r[key]) for r in [headings, *rows]) for key in headings}
    return "\n".join("  ".join(r[key].ljust(widths[key]) for key in headings).rstrip()
                     for r in [headings, *rows])


def main(argv):
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("raw", type=pathlib.Path)
    for name in ("gpu", "driver", "commit", "dataset", "command"):
        arguments.add_argument(f"--{name}", default="unknown")
    arguments.add_argument("--cores", type=int, default=0)
    arguments.add_argument("--json", type=pathlib.Path, required=True)
    options = arguments.parse_args(argv)

    steps = read_steps(options.raw)
    rows = Table(steps).fill(options.cores)
    ran = all(step.status == 0 or step.out_of_time for step in steps.values())
    met = all(r["verdict"] != "short" for r in rows)
    options.json.write_text(json.dumps({
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "gpu": options.gpu,
        "driver": options.driver,
        "commit": options.commit,
        "dataset": options.dataset,
        "command": options.command,
        "cores": options.cores,
        "all_met": ran and met,
        "bars": rows,
        "steps": [step.to_json() for step in steps.values()],
    }, indent=1) + "\n")
    print(to_text(rows))
    for step in steps.values():
        if step.trouble:
            print(f"step {step.name}: {step.trouble}")
    short = sum(r["verdict"] == "short" for r in rows)
    bars = sum(r["verdict"] != "-" for r in rows)
    failed = sum(s.status != 0 for s in steps.values())
    print(f"{options.gpu}, driver {options.driver}, commit {options.commit}: " +
          ("every step ran and nothing falls short" if ran and met else
           f"{short} of {bars} fall short, {failed} of {len(steps)} steps did not end well"))
    return 0 if ran and met else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
