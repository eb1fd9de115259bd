# SPDX-License-Identifier: Apache-2.0
"""The console script `millrace`: runs the program in this package."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def main() -> None:
    program = Path(__file__).parent / "bin" / "millrace"
    try:
        os.execv(program, ["millrace", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"millrace: {program}: {error.strerror}; install the package with pip")
