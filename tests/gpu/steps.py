#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the steps of a plan, and after each of them writes everything to the output folder.

RAW/plan.tsv has a line for each step: name, limit in seconds, command ("missing: why" if it cannot
run). The output folder has raw.tar.gz (all outputs), results.json and table.txt, each replaced
atomically. So a run that is killed leaves the results of all completed steps.
"""
import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tarfile
import threading
import time

import summarize

KEPT_BYTES = 1 << 20  # of each output, from its end
GRACE_SECONDS = 5  # from SIGTERM to SIGKILL, and from there until a process is left behind
SHORTEST = 5  # seconds; a step that has less left is not begun
STUCK = 137
# Steps during which the GPU's clocks and link are queried, and after how many seconds: an idle GPU
# lowers both. A query takes the driver's time, so steps with a bar for their idle time have none.
SAMPLED = {"python": 10, "soak": 30}


class Step:
    """A program in a process group of its own, with its outputs in files."""

    def __init__(self, raw, name, command, libraries):
        self.outputs = [raw / f"{name}.{kind}" for kind in ("out", "err")]
        with open(self.outputs[0], "wb") as out, open(self.outputs[1], "wb") as err:
            self.process = subprocess.Popen(["bash", "-c", f"exec {command}"], stdout=out,
                                            stderr=err, stdin=subprocess.DEVNULL,
                                            preexec_fn=os.setpgrp,
                                            env={**os.environ, "LD_LIBRARY_PATH": libraries})

    def signal(self, number):
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def ended_within(self, seconds):
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def run(self, limit):
        """The exit status as a shell reports it; 124 if it was stopped, 137 if that took SIGKILL or
        if even SIGKILL did not end it, which happens when the driver hangs."""
        status = None
        for number, seconds, stopped in ((None, limit, None),
                                         (signal.SIGTERM, GRACE_SECONDS, 124),
                                         (signal.SIGKILL, GRACE_SECONDS, STUCK)):
            if number is not None:
                self.signal(number)
            status = stopped
            if self.ended_within(seconds):
                break
        if status is None:
            status = self.process.returncode
            status = 128 - status if status < 0 else status
        self.signal(signal.SIGKILL)  # what it started and left running
        for path in self.outputs:
            keep_the_end(path)
        return status


def keep_the_end(path):
    size = path.stat().st_size
    if size > KEPT_BYTES:
        with open(path, "rb") as file:
            file.seek(size - KEPT_BYTES)
            end = file.read()
        path.write_bytes(end)


def replace(path, write):
    """Replaces `path` atomically by another file, which `write(other)` writes."""
    other = path.with_name(path.name + ".new")
    write(other)
    os.replace(other, path)


def archive(raw, path):
    with tarfile.open(path, "w:gz", compresslevel=1) as file:
        file.add(raw, arcname="raw")


def sample_later(raw, seconds):
    """Adds the GPU's facts to load.json after a given number of seconds of a step."""

    def sample():
        command = [sys.executable, pathlib.Path(__file__).with_name("machine.py"), "--gpu-only"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=GRACE_SECONDS)
        except subprocess.TimeoutExpired:
            return
        if done.returncode == 0:
            (raw / "load.json").write_text(done.stdout)

    timer = threading.Timer(seconds, sample)
    timer.daemon = True
    timer.start()
    return timer


class Run:
    def __init__(self, raw, out, libraries, seconds):
        self.raw, self.out, self.libraries = raw, out, libraries
        self.end = time.monotonic() + seconds
        self.status = 1
        self.running = None

    def save(self):
        """Writes all results so far. Failures are printed, and the run continues."""
        try:
            self.status, text = summarize.write(self.raw, self.out / "results.json")
            replace(self.out / "table.txt", lambda path: path.write_text(text))
            replace(self.out / "raw.tar.gz", lambda path: archive(self.raw, path))
            return text
        except Exception as error:  # pylint: disable=broad-except
            self.status = 1
            print(f"steps.py: the results were not written: {error!r}", file=sys.stderr, flush=True)
            return ""

    def note(self, *fields):
        with open(self.raw / "steps.tsv", "a", encoding="utf-8") as file:
            file.write("\t".join(str(field) for field in fields) + "\n")

    def step(self, name, limit, command, most):
        left = int(self.end - time.monotonic())
        limit = min(limit, left, most)
        if command.startswith("missing: "):
            self.note(name, "not run: " + command[len("missing: "):], 0, limit, "")
            return
        if limit < SHORTEST and limit == left:
            self.note(name, f"not run: {max(left, 0)} s are left", 0, 0, command)
            return
        timer = sample_later(self.raw, SAMPLED[name]) if name in SAMPLED else None
        begin = time.monotonic()
        self.running = Step(self.raw, name, command, self.libraries)
        status = self.running.run(limit)
        seconds = time.monotonic() - begin
        if timer:
            timer.cancel()
            timer.join()  # before another process is started: preexec_fn and threads do not mix
        out = self.raw / f"{name}.out"
        # The output is the result.
        if not (self.raw / f"{name}.json").exists() and out.read_bytes()[:1] == b"{":
            (self.raw / f"{name}.json").write_bytes(out.read_bytes())
        self.note(name, status, f"{seconds:.1f}", limit, command)
        print(f"{name:<18} ended with {status} after {seconds:.1f} s", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("raw", type=pathlib.Path)
    arguments.add_argument("out", type=pathlib.Path)
    arguments.add_argument("--seconds", type=int, required=True, help="for all steps")
    arguments.add_argument("--libraries", default="", help="the LD_LIBRARY_PATH of all steps")
    arguments.add_argument("--step-seconds", type=int, default=1 << 30, help="the most for a step")
    arguments.add_argument("--facts", action="append", default=[], metavar="NAME=VALUE")
    options = arguments.parse_args()
    raw = options.raw
    facts = dict(fact.split("=", 1) for fact in options.facts)
    (raw / "facts.json").write_text(json.dumps(facts))
    (raw / "steps.tsv").touch()
    run = Run(raw, options.out, options.libraries, options.seconds)

    def stop(number, _):
        if run.running:
            run.running.signal(signal.SIGKILL)
        sys.exit(128 + number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    text = run.save()
    for line in (raw / "plan.tsv").read_text().splitlines():
        name, limit, command = line.split("\t")
        run.step(name, int(limit), command, options.step_seconds)
        text = run.save()
    print(text, end="", flush=True)
    return run.status


if __name__ == "__main__":
    sys.exit(main())
