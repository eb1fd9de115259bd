#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a table (measured values, bars, ok or short) and a JSON file of a folder of raw results.

The folder is the one that steps.py fills; raw.tar.gz has the same files. Ends with 0 if every step
ran and met its bars, 1 otherwise. A value that was not measured is named with the reason; if
it has a bar, it counts as short.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import sys

import table

LOG_CHARACTERS = 6000  # of each output, from its end, in the JSON


def parse(text):
    """A JSON value, or a list with the JSON value of each line; None for other texts."""
    try:
        return json.loads(text)
    except ValueError:
        pass
    lines = []
    for line in text.splitlines():
        try:
            lines.append(json.loads(line))
        except ValueError:
            break  # of a program that was stopped
    return lines or None


class Step:
    """One step of the plan, with its exit status and its results."""

    def __init__(self, raw, name, status, seconds, limit, command):
        self.name, self.limit, self.command = name, int(limit), command
        self.seconds = float(seconds)
        self.status = int(status) if re.fullmatch(r"\d+", status) else None
        self.out = self._text(raw / f"{name}.out")
        self.err = self._text(raw / f"{name}.err")
        self.result = None
        self.trouble = self._trouble(status)
        text = self._text(raw / f"{name}.json")
        if text:
            self.result = parse(text)
            if self.result is None:
                self.trouble = self.trouble or "its result is no JSON"

    @staticmethod
    def _text(path):
        return path.read_text(errors="replace") if path.exists() else ""

    def _trouble(self, status):
        """Reason why the results are unreliable, or None."""
        if self.status is None:
            return status
        if self.status in (124, 137):
            return f"stopped after {self.limit} s"
        if self.status != 0:
            said = (self.err.strip() or self.out.strip()).splitlines()
            return f"ended with {self.status}" + (f": {said[-1].strip()}" if said else "")
        return None

    def value(self, *keys):
        """A member of the result, by its keys; None if it is missing."""
        value = self.result
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def number(self, *keys):
        value = self.value(*keys)
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


def lines_of(path):
    if not path.exists():
        return []
    return [line.split("\t") for line in path.read_text(errors="replace").splitlines()]


def read_steps(raw):
    """All steps of the plan, including those that have not run yet."""
    steps = {fields[0]: Step(raw, *fields) for fields in lines_of(raw / "steps.tsv")
             if len(fields) == 5}
    for fields in lines_of(raw / "plan.tsv"):
        name, limit, command = fields
        if name not in steps:
            steps[name] = Step(raw, name, "not run yet", 0, limit, command)
    return steps


def read_json(path):
    try:
        value = json.loads(path.read_text(errors="replace"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def to_text(rows):
    headings = {"what": "what", "measured": "measured", "bar": "bar", "verdict": "verdict"}
    widths = {key: max(len(r[key]) for r in [headings, *rows]) for key in headings}
    return "\n".join("  ".join(r[key].ljust(widths[key]) for key in headings).rstrip()
                     for r in [headings, *rows])


def write(raw, path):
    """Writes the JSON; returns the exit status and the table as text."""
    steps = read_steps(raw)
    facts = {"gpu": "unknown", "driver": "unknown", "commit": "unknown", "dataset": "unknown",
             "command": "unknown", **read_json(raw / "facts.json")}
    rows = table.rows_of(steps, read_json(raw / "load.json").get("gpu") or {}, bool(
        facts.get("quick")))
    ran = all(step.status == 0 for step in steps.values())
    met = all(r["verdict"] != "short" for r in rows)
    other = path.with_name(path.name + ".new")
    other.write_text(json.dumps({
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        **facts,
        "all_met": ran and met,
        "bars": rows,
        "steps": [step.to_json() for step in steps.values()],
    }, indent=1) + "\n")
    os.replace(other, path)

    lines = [to_text(rows)]
    lines += [f"step {step.name}: {step.trouble}" for step in steps.values() if step.trouble]
    for step in steps.values():
        warnings = step.value("warnings")
        for warning in warnings if isinstance(warnings, list) else []:
            lines.append(f"step {step.name} warns: {warning}")
    short = sum(r["verdict"] == "short" for r in rows)
    bars = sum(r["verdict"] != "-" for r in rows)
    failed = sum(s.status != 0 for s in steps.values())
    lines.append(f"{facts['gpu']}, driver {facts['driver']}, commit {facts['commit']}: " +
                 ("every step ran and nothing falls short" if ran and met else
                  f"{short} of {bars} fall short, {failed} of {len(steps)} steps did not end well"))
    return 0 if ran and met else 1, "\n".join(lines) + "\n"


def main(argv):
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("raw", type=pathlib.Path, help="the folder")
    arguments.add_argument("--json", type=pathlib.Path, required=True, help="the JSON to write")
    options = arguments.parse_args(argv)
    status, text = write(options.raw, options.json)
    print(text, end="")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
