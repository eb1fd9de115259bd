#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts that break one rule of words.py each, in each kind of file: the breach must be named."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path, PurePosixPath

from words import breaches

LONG = "word " * 15


class Words(unittest.TestCase):
    def found(self, name, text):
        return list(breaches(PurePosixPath(name), text))

    def test_plain_sentences(self):
        sound = "// Returns the size. This is no longer true.\nint size();  // in bytes\n"
        self.assertEqual(self.found("a.h", sound), [])
        self.assertEqual(self.found("a.cpp", 'auto text = "// What is none";\n'), [])
        self.assertEqual(self.found("a.cpp", 'auto text = R"(// Of none)";\n'), [])

    def test_how_a_comment_begins(self):
        for begin in ["What it is.", "Who waits.", "That which is cut.", "Of all, the first."]:
            why = "a comment begins with a noun or a verb: " + begin
            self.assertEqual(self.found("a.h", f"int a;\n/// {begin}\n"), [(2, why)])
            self.assertEqual(self.found("a.h", f"int a;  ///< {begin}\n"), [(1, why)])
            self.assertEqual(self.found("a.h", f"/* {begin} */\n"), [(1, why)])
            self.assertEqual(self.found("a.py", f"# {begin}\n"), [(1, why)])
            self.assertEqual(self.found("a.py", f'def f():\n    """{begin}"""\n'), [(2, why)])
            self.assertEqual(self.found("CMakeLists.txt", f"\n# {begin}\n"), [(2, why)])
            self.assertEqual(self.found("a.md", f"{begin}\n"), [])  # a page is not a comment

    def test_phrases(self):
        for text, phrase in {
            "It is no file.": "is no", "There are none.": "are none",
            "All that becomes of it.": "becomes of", "This comes of that.": "comes of",
        }.items():
            for name, line in {"a.h": "// " + text, "a.md": text, "a.sh": "# " + text}.items():
                (number, why), = self.found(name, "\n" + line + "\n")
                self.assertEqual((number, why.split(":")[0]), (2, f'"{phrase}"'))

    def test_long_sentences(self):
        why = "a sentence of 31 words, at most 30"
        self.assertEqual(self.found("a.h", f"// {LONG}\n// {LONG}end.\n"), [(1, why)])
        self.assertEqual(self.found("a.h", f"// {LONG}\n// {LONG}.\n"), [])
        self.assertEqual(self.found("a.h", f"// {LONG}here. {LONG}\n// {LONG}end.\n"), [(1, why)])
        self.assertEqual(self.found("a.h", f"// {LONG}\n//\n// {LONG}end.\n"), [])
        self.assertEqual(self.found("a.md", f"- {LONG}\n- {LONG}end\n"), [])
        self.assertEqual(self.found("a.md", f"| {LONG} | {LONG} end |\n"), [])
        self.assertEqual(self.found("a.md", f"```\n{LONG}{LONG}end\n```\n"), [])

    def test_the_command(self):
        command = [sys.executable, Path(__file__).with_name("words.py")]
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "loader" / "a.h"
            path.parent.mkdir()
            path.write_text("// A size.\n", encoding="utf-8")
            sound = subprocess.run([*command, folder], capture_output=True, text=True)
            path.write_text("\n// Of one.\n", encoding="utf-8")
            broken = subprocess.run([*command, folder], capture_output=True, text=True)
        self.assertEqual((sound.returncode, sound.stdout), (0, "The rules of words are kept.\n"))
        self.assertEqual(broken.returncode, 1)
        self.assertEqual(
            broken.stdout, "loader/a.h:2: a comment begins with a noun or a verb: Of one.\n"
        )


if __name__ == "__main__":
    unittest.main()
