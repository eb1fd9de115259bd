# SPDX-License-Identifier: Apache-2.0
"""Counts what the compiled kernels of crops execute, from their machine code.

nvcc compiles the kernels, ptxas tells registers and shared memory, and nvdisasm gives the
instructions with their source lines. Each loop of the machine code is one loop of the source
(cost_model.KERNELS), found by the source line of its last branch. An instruction runs as often as
the innermost loop around it, or as the branch that the model counts. The encoding also has the
cycles for which a warp waits after an instruction, and the loads whose results it waits for. From
them follow the cycles that a warp alone takes (`serial`).
"""
import collections
import pathlib
import re
import subprocess
import tempfile

from cost_model import COLUMNS, KERNELS, parts_of

PROJECT = pathlib.Path(__file__).resolve().parent.parent.parent
ARCHITECTURES = ("80", "89", "90")
# Cycles until a load's result is there. Luo et al., Benchmarking and Dissecting the Nvidia Hopper
# GPU Architecture (arXiv 2402.13499): shared memory 29 to 30, L2 262 to 273. All loads from device
# memory are taken to be those of L2. Other results that a warp waits for: 14 to 24.
LATENCIES = {"LDG": 265, "LD": 265, "LDL": 40, "LDS": 30, "SHFL": 24, "LDC": 40}
OTHER_LATENCY = 20
# Lines whose loads the L1 cache has, taken to be 40 cycles. In 34% of the passes (`sector_warps`)
# the next word of some lane begins a sector of 8 words, which comes from L2.
CACHED = {"tables.make(crop": 40, "words_[number]": 117}

# The unit of each instruction; without one it only takes an issue slot.
UNITS = {
    "alu": "IADD3 IADD VIADD LOP3 SHF LEA ISETP SEL PRMT IMNMX VIMNMX PLOP3 VOTE IABS BMSK SGXT "
           "MOV R2UR P2R R2P LOP VIADDMNMX VIMNMX3 I2I FSEL CS2R",
    "imad": "IMAD FFMA FADD FMUL IMUL",
    "xu": "POPC FLO BREV I2F F2I MUFU I2FP",
    "lsu": "LDS STS LDG STG LD ST LDL STL SHFL LDC ATOM ATOMG RED",
    None: "BRA BSSY BSYNC EXIT NOP BAR WARPSYNC S2R S2UR BREAK RET CALL BRX ENDCOLLECTIVE "
        "ULDC UIADD3 USHF ULOP3 UIMAD UISETP USEL ULEA UMOV UPLOP3 UPRMT UPOPC UFLO R2B B2R "
        "DEPBAR UP2UR UR2UP ERRBAR MEMBAR CCTL YIELD HFMA2",
}
UNIT_OF = {name: unit for unit, names in UNITS.items() for name in names.split()}

# Lines of code that photographs do not run: images that came as pixels, widths other than multiples
# of 4, exchanged rows and columns, corrupt tiles, and coefficients of two bytes.
NOT_TAKEN = ("copy_image(work, sample)", "pass_columns<1>", "make_row<true>",
             "grey_sample * 0x01010101U", "read_wide(values, wide, at)")


class Instruction:
    def __init__(self, text, lines, labels, high):
        self.text, self.lines, self.labels = text, lines, labels
        name = re.sub(r"^@!?U?P\d+ +", "", text).split()[0]
        self.opcode = name.split(".")[0]
        self.unit = UNIT_OF.get(self.opcode, "unknown")
        if self.unit == "unknown":
            raise SystemExit(f"{text}: the instruction is not in kernel_counts.py's UNITS; add it")
        self.wide = 4 if ".128" in name else 2 if ".64" in name and self.opcode != "LDC" else 1
        # Control bits 41 to 57 of the higher half: cycles to wait, yield, the barrier that the
        # result releases, the one that the operands release, and those that are waited for.
        self.stall = high >> 41 & 15
        self.writes = high >> 46 & 7
        self.reads = high >> 49 & 7
        self.waits = high >> 52 & 63


def parse(text, wanted):
    """The instructions of the wanted functions, by their names."""
    functions, current, lines, labels, fresh, encoding = {}, None, [], [], True, None
    for line in text.splitlines():
        if section := re.match(r"\.text\.(\S+):", line):
            name = next((name for name in wanted if re.search(rf"\d{name}E", section[1])), None)
            current = functions.setdefault(name, []) if name else None
            lines, labels, fresh = [], [], True
        elif current is None:
            continue
        elif place := re.match(r'\s*//## File "[^"]*?([^"/]+)", line (\d+)', line):
            if fresh:
                lines, fresh = [], False
            lines.append((place[1], int(place[2])))
        elif label := re.match(r"(\.L_x_\d+):", line):
            labels.append(label[1])
        elif code := re.match(r"\s+/\*[0-9a-f]{4,}\*/\s+(.*?) ;\s+/\* 0x[0-9a-f]{16} \*/", line):
            encoding = (code[1], list(lines), labels)
            labels, fresh = [], True
        elif (high := re.match(r"\s+/\* 0x([0-9a-f]{16}) \*/", line)) and encoding:
            current.append(Instruction(*encoding, int(high[1], 16)))
            encoding = None
    return functions


class Graph:
    """Basic blocks of a function, as ranges of instructions, and its loops."""

    def __init__(self, code):
        places = {label: n for n, one in enumerate(code) for label in one.labels}
        begins = sorted({0, *places.values(), *(
            n + 1 for n, one in enumerate(code[:-1])
            if one.opcode in ("BRA", "EXIT", "BSYNC", "RET", "BRX"))})
        self.blocks = list(zip(begins, begins[1:] + [len(code)]))
        number = {begin: n for n, (begin, _) in enumerate(self.blocks)}
        self.next = [self.followers(code[end - 1], n, places, number)
                     for n, (_, end) in enumerate(self.blocks)]
        self.before = [[] for _ in self.blocks]
        for n, following in enumerate(self.next):
            for other in following:
                self.before[other].append(n)
        self.loops = self.find_loops()

    def followers(self, last, n, places, number):
        """Branches for diverged warps at a vote or shuffle (BRA.DIV) are left out."""
        target = re.search(r"\bBRA\b.*`\((\.L_x_\d+)\)", last.text)
        following = []
        if target and ".DIV" not in last.text:
            following.append(number[places[target[1]]])
        always = target and ".DIV" not in last.text and re.match(r"BRA `", last.text)
        if not always and not re.match(r"(EXIT|RET)", last.text) and n + 1 < len(self.blocks):
            following.append(n + 1)
        return following

    def reached(self):
        seen, left = set(), [0]
        while left:
            n = left.pop()
            if n not in seen:
                seen.add(n)
                left += self.next[n]
        return seen

    def find_loops(self):
        """Blocks of each natural loop, by its first block; and the last blocks of each."""
        reached = self.reached()
        dominators = {n: set(reached) for n in reached}
        dominators[0] = {0}
        changed = True
        while changed:
            changed = False
            for n in sorted(reached - {0}):
                found = {n} | set.intersection(*(
                    dominators[other] for other in self.before[n] if other in reached))
                changed = changed or found != dominators[n]
                dominators[n] = found
        loops = collections.defaultdict(lambda: (set(), set()))
        for n in reached:
            for first in self.next[n]:
                if first in dominators[n]:
                    body, left = {first}, [n]
                    while left:
                        other = left.pop()
                        if other not in body:
                            body.add(other)
                            left += [one for one in self.before[other] if one in reached]
                    loops[first][0].update(body)
                    loops[first][1].add(n)
        return loops


class Source:
    """Lines of the project's kernels, to find those with a given text."""

    def __init__(self):
        self.texts = {path.name: path.read_text(encoding="utf-8").splitlines()
                      for folder in ("gpu/pixel", "decode/include/millrace/detail")
                      for path in (PROJECT / folder).iterdir() if path.suffix == ".h"}

    def has(self, place, text, in_any_file=False):
        name, line = place
        files = self.texts.values() if in_any_file else [self.texts.get(name, [])]
        return any(line <= len(lines) and text in lines[line - 1] for lines in files)


def loop_of(code, source, loops):
    """The loop of the source that the last branch of a machine code's loop belongs to. For sm_90
    ptxas tells some inlined lines with a wrong file, so that their numbers alone count at last."""
    for in_any_file in (False, True):
        for place in code.lines:
            for number, loop in enumerate(loops):
                if source.has(place, loop.line, in_any_file):
                    return number
    raise SystemExit(f"{code.lines[0][0]}:{code.lines[0][1]}: a loop that is not in "
                     f"cost_model.py's KERNELS ({code.text}); add it, or unroll it")


def is_taken(one, source):
    return not any(source.has(place, text) for place in one.lines for text in NOT_TAKEN)


def latency_of(one, source):
    return next((cycles for text, cycles in CACHED.items() if one.opcode == "LDG" and any(
        source.has(place, text) for place in one.lines)),
                LATENCIES.get(one.opcode, OTHER_LATENCY))


def serial_cycles(code, source, ready, now):
    """Time after some instructions of a warp that is alone, which begins them at `now`."""
    for one in code:
        for barrier in range(6):
            if one.waits >> barrier & 1:
                now = max(now, ready[barrier])
        latency = latency_of(one, source)
        for barrier, cycles in ((one.writes, latency), (one.reads, min(latency, OTHER_LATENCY))):
            if barrier < 6:
                ready[barrier] = now + cycles
        now += max(one.stall, 1)
    return now


def count_kernel(name, code, kernel, source):
    graph = Graph(code)
    declared = parts_of(kernel)
    around = {}  # the number of the innermost loop of each block
    found = collections.Counter()
    for body, lasts in sorted(graph.loops.values(), key=lambda loop: -len(loop[0])):
        last = code[graph.blocks[max(lasts)][1] - 1]
        if not is_taken(last, source):
            continue
        number = loop_of(last, source, kernel["loops"])
        found[number] += 1
        around.update((n, number) for n in body)
    wrong = [loop.line for number, loop in enumerate(kernel["loops"]) if found[number] != 1]
    if wrong:
        raise SystemExit(f"{name}: not one loop of the machine code each: {wrong}; "
                         f"compare cost_model.py's KERNELS with the source")
    loops = [collections.Counter() for _ in declared]
    ready, now = [0] * 6, 0
    for n in sorted(graph.reached()):
        begin, end = graph.blocks[n]
        block = [one for one in code[begin:end] if is_taken(one, source)]
        entry = loops[next((number for number, part in enumerate(declared) if block and
                            part in kernel.get("branches", ()) and any(
                                source.has(place, part.line) for place in block[0].lines)),
                           around.get(n, -1))]
        after = serial_cycles(block, source, ready, now)
        entry["serial"] += after - now
        now = after
        for one in block:
            entry["issue"] += 1
            if one.unit:
                entry[one.unit] += one.wide
    return {loop.line: [entry[name] for name in COLUMNS] for loop, entry in zip(declared, loops)}


def compile_kernels(nvcc, architecture, folder):
    """The machine code's file, and the kernels' registers and bytes as ptxas tells them."""
    cubin = folder / f"{architecture}.cubin"
    includes = [f"-I{PROJECT / path}" for path in
                ("gpu", "gpu/include", "loader/include", "decode/include")]
    told = subprocess.run(
        [nvcc, "-std=c++20", "-O3", "-DNDEBUG", "-fmad=false", "-lineinfo",
         f"-arch=sm_{architecture}", "-cubin", "-Xptxas", "-v", *includes,
         PROJECT / "gpu/pixel/kernels.cu", "-o", cubin], check=True, capture_output=True,
        text=True).stderr
    kernels = {}
    for name in KERNELS:
        facts = re.search(rf"Compiling entry function '\S*\d{name}E\S*'.*\n.*\n"
                          r".* (\d+) bytes spill stores, (\d+) bytes spill loads\n"
                          r".*Used (\d+) registers(?:.*?, (\d+) bytes smem)?", told)
        kernels[name] = {"registers": int(facts[3]), "shared_bytes": int(facts[4] or 0),
                         "spill_bytes": int(facts[1]) + int(facts[2])}
    return cubin, kernels


def compiler_version(nvcc):
    told = subprocess.run([nvcc, "--version"], check=True, capture_output=True, text=True).stdout
    return re.search(r"\bV([\d.]+)", told)[1]


def count_architecture(nvcc, nvdisasm, architecture, folder):
    cubin, kernels = compile_kernels(nvcc, architecture, folder)
    listing = subprocess.run([nvdisasm, "-c", "-gi", "-hex", cubin], check=True,
                             capture_output=True, text=True).stdout
    source = Source()
    code = parse(listing, KERNELS)
    return {name: {**kernels[name],
                   "counts": count_kernel(name, code[name], KERNELS[name], source)}
            for name in KERNELS}


def count_all(nvcc, nvdisasm):
    with tempfile.TemporaryDirectory() as folder:
        return {"nvcc": compiler_version(nvcc), "kernels": {
            architecture: count_architecture(nvcc, nvdisasm, architecture, pathlib.Path(folder))
            for architecture in ARCHITECTURES}}
