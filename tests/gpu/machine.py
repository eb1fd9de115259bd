#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""machine.py [--gpu-only] [--data PATH]: prints facts of this machine as JSON.

nvidia-smi provides the GPU's facts, lscpu the processor's. A fact that a program does not print is
left out.
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import time

# Fields of one query; a field that the driver does not know makes the whole query fail.
GPU_FIELDS = (
    ("name", "driver_version", "memory.total"),
    ("pcie.link.gen.current", "pcie.link.gen.max", "pcie.link.width.current",
     "pcie.link.width.max"),
    ("clocks.current.sm", "clocks.max.sm", "clocks.current.memory", "clocks.max.memory"),
    ("power.draw", "power.limit", "temperature.gpu"),
    ("persistence_mode", "mig.mode.current", "compute_cap"),
)
CPU_FIELDS = {
    "Model name": "model", "CPU(s)": "processors", "Thread(s) per core": "threads_per_core",
    "Core(s) per socket": "cores_per_socket", "Socket(s)": "sockets", "NUMA node(s)": "numa_nodes",
    "L3 cache": "l3_bytes", "CPU max MHz": "max_mhz"
}
END = time.monotonic() + 4  # for all calls


def output_of(*command):
    """The standard output of a command; None if it fails or takes too long."""
    try:
        left = max(0.1, END - time.monotonic())
        done = subprocess.run(command, capture_output=True, text=True, timeout=left,
                              env={**os.environ, "LC_ALL": "C"})
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def query(fields):
    """The values of the first GPU, or None."""
    text = output_of("nvidia-smi", "--id=0", f"--query-gpu={','.join(fields)}",
                     "--format=csv,noheader,nounits")
    values = [value.strip() for value in (text or "").partition("\n")[0].split(",")]
    return dict(zip(fields, values)) if len(values) == len(fields) else None


def gpu_facts():
    facts = {}
    for fields in GPU_FIELDS:
        facts.update(query(fields) or {})
    return {field: value for field, value in facts.items() if value and not value.startswith("[")}


def rows_of(entries):
    for entry in entries:
        yield entry.get("field", "").rstrip(":").strip(), str(entry.get("data") or "")
        yield from rows_of(entry.get("children", []))


def cpu_facts():
    facts = {"usable": len(os.sched_getaffinity(0))}
    try:
        rows = dict(rows_of(json.loads(output_of("lscpu", "-J", "-B") or "{}").get("lscpu", [])))
    except (ValueError, AttributeError):
        rows = {}
    for field, name in CPU_FIELDS.items():
        value = rows.get(field, "")
        number = re.match(r"\d+", value)
        if name == "model" and value:
            facts[name] = value
        elif number:
            facts[name] = int(number.group())
    return {**facts_of_kernel(), **facts}


def facts_of_kernel():
    """The model from /proc, for machines where lscpu does not find /sys."""
    try:
        found = re.search(r"^model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return {"model": found.group(1)} if found else {}


def bytes_of(path):
    """The size of a file, or of all files in a folder; None without files."""
    files = [path] if path.is_file() else path.rglob("*")
    return sum(file.stat().st_size for file in files if file.is_file()) or None


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--gpu-only", action="store_true")
    arguments.add_argument("--data", type=pathlib.Path, help="the dataset, whose size is told")
    options = arguments.parse_args()
    facts = {}
    if not options.gpu_only:
        facts["cpu"] = cpu_facts()
    facts["gpu"] = gpu_facts()
    if not options.gpu_only:
        facts["nvidia_smi"] = shutil.which("nvidia-smi")
        facts["data_bytes"] = bytes_of(options.data) if options.data else None
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
