# SPDX-License-Identifier: Apache-2.0
"""Tests the table of bench/peers with stand-ins for the installed loaders."""

import contextlib
import io
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench" / "peers"))
import table

# Prints a result of window.py, whose arguments are: the kind, the module, its arguments.
STAND_IN = """#!/bin/sh
shift 2
case "$1 $2" in
"rate broken") echo "first line" >&2; echo "no such codec" >&2; exit 1 ;;
"rate libjpeg_turbo") echo '{"rate": 100, "cpu": 0.02, "pss": 1}' ;;
rate*) echo '{"rate": 150, "cpu": 0.01, "pss": 70.4}' ;;
"pixels exact") echo '{"largest": 0, "mean": 0}' ;;
"pixels near") echo '{"largest": 12, "mean": 0.157}' ;;
*) echo '{}' ;;
esac
"""


class TableTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.work = Path(folder.name)
        python = self.work / "millrace" / "bin" / "python"
        python.parent.mkdir(parents=True)
        python.write_text(STAND_IN)
        python.chmod(0o755)
        self.photos = self.work / "photos"
        self.photos.mkdir()
        (self.photos / "one.jpg").touch()
        self.addCleanup(setattr, table, "PEERS", table.PEERS)

    def rows(self, *peers):
        table.PEERS = list(peers)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            table.main(str(self.photos), str(self.work), "2", "1")
        return printed.getvalue().splitlines()[2:]

    def test_ratios_and_pixels_of_each_peer(self):
        rows = self.rows(
            table.Peer("A", "millrace", "exact"),
            table.Peer("B", "millrace", "near", (), "float32"),
            table.Peer("C", "millrace", "other"),
        )
        beside = "1.50 (1.50 to 1.50) | 0.50 | 70"
        self.assertEqual(rows[0], f"| A | {beside} | equal |")
        self.assertEqual(rows[1], f"| B (float32) | {beside} | 12, 0.16 |")
        self.assertEqual(rows[2], f"| C | {beside} | no fixed box |")

    def test_peers_that_are_not_installed_or_fail_are_skipped_with_the_reason(self):
        (self.work / "other.skipped").write_text("ERROR: no matching distribution\n")
        rows = self.rows(
            table.Peer("A", "other", "exact"), table.Peer("B", "millrace", "broken")
        )
        self.assertEqual(rows[0], "| A | skipped: ERROR: no matching distribution | | | |")
        self.assertEqual(rows[1], "| B | skipped: no such codec | | | |")

    def test_files_made_of_other_photographs_are_not_used(self):
        made = self.work / "made" / "millrace_first.lmdb"
        made.parent.mkdir()
        made.touch()
        self.rows(table.Peer("A", "millrace", "exact"))
        self.assertFalse(made.exists())

    def test_a_folder_without_jpegs_is_an_error(self):
        (self.photos / "one.jpg").unlink()
        with self.assertRaisesRegex(SystemExit, "photos: found no JPEGs"):
            self.rows(table.Peer("A", "millrace", "exact"))

    def test_the_median_and_range_are_of_ratios_to_both_neighbours(self):
        def one(rate):
            return {"rate": rate, "cpu": 1.0, "pss": 5}

        windows = [(one(50), one(r), one(150)) for r in (100, 300, 200)]
        row = table.row(table.Peer("A", "", ""), windows, {"largest": 0})
        self.assertEqual(row, "| A | 2.00 (1.00 to 3.00) | 1.00 | 5 | equal |")


if __name__ == "__main__":
    unittest.main()
