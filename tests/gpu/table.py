# SPDX-License-Identifier: Apache-2.0
"""The rows of the table: each with the measured value, the bar and the verdict."""
import csv
import re

import cost_model

SANITIZERS = {
    "memcheck": "memcheck, kernels", "memcheck_pipeline": "memcheck, one pipeline",
    "racecheck": "racecheck, kernels", "initcheck": "initcheck, kernels",
    "synccheck": "synccheck, kernels"
}
GEMM_RUNS = {"gemm_256": "256", "gemm_64": "64"}
IDLE_POINTS = 0.3  # above the floor
# Growth below this is ignored: allocators keep some pages.
RSS_GROWTH_MB = 10
DEVICE_GROWTH_MB = 1
IMAGE_BYTES = 224 * 224 * 3  # of a sample in bench's default recipe
PIXELS = (224, 299, 384, 518)


def row(what, measured, bar, ok):
    """`ok` is True, False, or None for a value without a bar."""
    return {
        "what": what, "measured": measured, "bar": bar,
        "verdict": {True: "ok", False: "short", None: "-"}[ok]
    }


def figure(number):
    return f"{number:.3g}" if abs(number) < 100 else f"{number:.1f}"


def short_name(run):
    """The name of a benchmark without Google Benchmark's own parts."""
    return re.sub(r"/iterations:.*|/manual_time.*", "", str(run["name"]))


def rate_of(entry):
    """Images per second of a trainer's entry, or None."""
    rate = entry.get("images_per_second")
    return rate if isinstance(rate, (int, float)) and rate > 0 else None


def mean(entries):
    return sum(rate_of(entry) for entry in entries) / len(entries)


class Table:
    def __init__(self, steps, load, quick):
        self.steps, self.load, self.quick = steps, load, quick
        self.rows = []

    def step(self, name):
        """The step, and the reason why it cannot be used, or None."""
        step = self.steps.get(name)
        if step is None:
            return None, "not in the quick plan" if self.quick else f"the plan has no step {name}"
        return step, step.trouble

    def add(self, what, measured, bar="", ok=None):
        self.rows.append(row(what, measured, bar, ok))

    def not_measured(self, name, what, bar, reason):
        """Adds a row without a value: short if it has a bar and its step is in the plan."""
        planned = name in self.steps or not self.quick
        self.add(what, f"not measured: {reason}", bar, False if bar and planned else None)

    def numbers(self, what, name, bar, *paths):
        """The numbers of a result at these paths of keys; None and a row if any is missing."""
        step, trouble = self.step(name)
        found = [None if trouble else step.number(*path) for path in paths]
        if not trouble and None in found:
            missing = [".".join(path) for path, number in zip(paths, found) if number is None]
            trouble = f"the result has no {', '.join(missing)}"
        if trouble:
            self.not_measured(name, what, bar, trouble)
            return None
        return found

    def value(self, what, name, keys, unit, bar="", reaches=None, note=""):
        """Adds a number of a result, with a verdict if it has a bar."""
        found = self.numbers(what, name, bar, keys)
        if found:
            self.add(what, figure(found[0]) + unit + note, bar,
                     reaches(found[0]) if reaches else None)

    def machine(self):
        step, trouble = self.step("machine")
        gpu = {} if trouble else {**(step.value("gpu") or {}), **self.load}
        cpu = {} if trouble else step.value("cpu") or {}
        why = f"not measured: {trouble or 'nvidia-smi does not tell it'}"
        under = "under load" if self.load else "without load"

        def told(what, text, *fields):
            self.add(what, text.format(*[gpu[field] for field in fields]) if all(
                field in gpu for field in fields) else why)

        told("GPU", "{}, driver {}, {} MiB", "name", "driver_version", "memory.total")
        told("PCIe, " + under, "generation {} of {}, {} of {} lanes", "pcie.link.gen.current",
             "pcie.link.gen.max", "pcie.link.width.current", "pcie.link.width.max")
        told("clocks, " + under, "SM {} of {} MHz, memory {} of {} MHz", "clocks.current.sm",
             "clocks.max.sm", "clocks.current.memory", "clocks.max.memory")
        if "usable" in cpu:
            threads = cpu.get("threads_per_core")
            cores = (cpu.get("cores_per_socket") or 0) * (cpu.get("sockets") or 0)
            self.add("processor", f"{cpu.get('model', 'unknown')}, {cpu['usable']} usable, "
                     f"{cores or 'unknown'} cores, threads of each: {threads or 'unknown'} "
                     f"(SMT {'unknown' if not threads else 'on' if threads > 1 else 'off'})")
        else:
            self.add("processor", f"not measured: {trouble or 'the result has no cpu'}")
        self.add("dataset, last-level cache", self.beside_cache().strip(" ()") or
                 "not measured: lscpu and bench do not tell both")

    def beside_cache(self):
        """The sizes of the dataset and the last-level cache: rates of cached data differ."""
        data = cache = None
        for name, unit, data_keys, cache_keys in (
                ("machine", 1e6, ("data_bytes",), ("cpu", "l3_bytes")),
                ("gemm_256", 1, ("dataset_mb",), ("last_level_cache_mb",))):
            step, trouble = self.step(name)
            if not trouble:
                data = data or (step.number(*data_keys) or 0) / unit
                cache = cache or (step.number(*cache_keys) or 0) / unit
        return f" ({data:.1f} MB of data, cache of {cache:.1f} MB)" if data and cache else ""

    def tests(self, what, name):
        """Row for a GoogleTest program, which must succeed and run tests. Returns text or None."""
        step, trouble = self.step(name)
        if trouble and (step is None or step.status is None):
            self.not_measured(name, what, "all pass", trouble)
        elif trouble:
            self.add(what, trouble, "all pass", False)
        else:
            passed = re.search(r"\[  PASSED  \] (\d+) test", step.out)
            skipped = re.search(r"\[  SKIPPED \] (\d+) test", step.out)
            count, missed = (int(found.group(1)) if found else 0 for found in (passed, skipped))
            text = f"{count} passed" + (f", {missed} skipped" if missed else "")
            # A few are for machines without a GPU. If most tests were skipped, they did not find
            # the GPU.
            self.add(what, text if count else "no test ran", "all pass", count > missed)

    def sanitizer(self, what, name):
        """The same under a sanitizer, which prints its findings in its last line."""
        bar = "no finding"
        step, trouble = self.step(name)
        if step is None or step.status is None:
            self.not_measured(name, what, bar, trouble)
            return
        told = re.findall(r"^=+ ((?:ERROR|RACECHECK) SUMMARY: (\d+) .*)", step.out, re.M)
        passed = re.search(r"\[  PASSED  \] (\d+) test", step.out)
        ran = int(passed.group(1)) if passed else 0
        found = [text for text, count in told if int(count) > 0]
        if found or trouble:
            self.add(what, "; ".join([*found[:1], *([trouble] if trouble else [])]), bar, False)
        elif not told or not ran:
            self.add(what, "it told no summary" if ran else "no test ran", bar, False)
        else:
            self.add(what, f"0 findings, {ran} tests", bar, True)

    def kernels(self):
        step, trouble = self.step("kernels")
        runs = None if trouble else step.value("benchmarks")
        runs = [run for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []
        for kernel, bar in (("Convert", ">= 0.8 of a copy"), ("Mix", "")):
            for pixels in PIXELS:
                what = {"Convert": "conversion", "Mix": "mix"}[kernel]
                what = f"{what} kernel at {pixels} px"
                name = re.compile(rf"{kernel}\w*/\d+x{pixels}x{pixels}x\d+\b")
                self.kernel(what, bar, trouble, [
                    run for run in runs if name.match(str(run.get("name")))])
        step, _ = self.step("machine")
        for form in cost_model.FORMS:
            what = f"kernels of crops of {form} at 224 px"
            missing, measured, bar, met = cost_model.beside_prediction(
                runs, step and step.value("gpu", "name"), form)
            if trouble or missing:
                self.not_measured("kernels", what, bar, trouble or missing)
            else:
                self.add(what, measured, bar, met)

    def kernel(self, what, bar, trouble, runs):
        failed = [str(run["name"]) for run in runs if run.get("error_occurred")]
        told = [run for run in runs if isinstance(run.get("of_copy"), (int, float))]
        if trouble or failed or not told:
            reason = trouble or (f"{failed[0]} failed" if failed else "the result has no of_copy")
            self.not_measured("kernels", what, bar, reason)
            return
        worst = min(told, key=lambda run: run["of_copy"])
        share = worst.get("of_bandwidth")
        self.add(what, (f"{share:.3f} of the device's bandwidth, " if isinstance(
            share, float) else "") + f"{worst['of_copy']:.3f} of a copy of as many bytes "
                 f"({short_name(worst)}, the worst of {len(told)})", bar,
                 worst["of_copy"] >= 0.8 if bar else None)

    def gemm_runs(self):
        for name, size in GEMM_RUNS.items():
            where = f", step of matrix products, batches of {size}"
            self.idle(name, where)
            copied = int(size) * IMAGE_BYTES / 2**20
            for kind, key in (("our pinned", "h2d_percent_of_plain"),
                              ("cudaMallocHost", "h2d_percent_of_plain_malloc_host")):
                def copies(what, key, *bar):
                    self.value(f"H2D of {what}, {copied:.1f} MiB", name, (key,), "%", *bar)

                # Paced launches come from time to time, like the loader's; the others follow each
                # other directly.
                paced = key.replace("plain", "paced")
                for workers, end in (("idle", ""), ("busy", "_busy")):
                    of = f"{kind} memory, {workers} workers"
                    bar = (">= 99", lambda n: n >= 99) if not end else ()
                    copies(f"plain copies, {of}", key + end, *bar)
                    copies(f"paced plain copies, {of}", paced + end)
                copies(f"paced plain copies under steps, {kind} memory", paced + "_under_steps")
            self.value("copies hidden" + where, name, ("copy_hidden_percent",), "%", ">= 99",
                       lambda n: n >= 99)
            self.consumer(name, where)
            self.value("H2D" + where, name, ("h2d_gb_per_second",), " GB/s")
            self.value("rate" + where, name, ("samples_per_second",), " samples/s",
                       note=self.beside_cache())

    def idle(self, name, where):
        """Idle time by the events, with its floor, and with synthetic batches, which include it."""
        what, bar = "idle by events" + where, f"<= floor + {IDLE_POINTS}"
        found = self.numbers(what, name, bar, ("device_idle_percent",), ("idle_floor_percent",))
        if found:
            idle, floor = found
            self.add(what, f"{idle:.3f}% (floor {floor:.3f}%)", bar, idle <= floor + IDLE_POINTS)
        self.value("idle by synthetic batches" + where, name, ("idle_by_synthetic_percent",), "%",
                   f"<= {IDLE_POINTS}", lambda n: n <= IDLE_POINTS)

    def spin(self):
        """A step that the loader can just feed."""
        where = ", spinning step, batches of 256"
        for what, key in (("idle by events", "device_idle_percent"),
                          ("idle by synthetic batches", "idle_by_synthetic_percent")):
            self.value(what + where, "spin_256", (key,), "%", "< 1 (aim 0.5)", lambda n: n < 1)
        self.value("idle's floor" + where, "spin_256", ("idle_floor_percent",), "%")

    def consumer(self, name, where):
        what, bar = "trainer's thread per batch" + where, "mean <= 20"
        found = self.numbers(what, name, bar, *[("consumer_us_per_batch", key)
                                                for key in ("mean", "p50", "p99")])
        if found:
            average, median, most = (figure(number) for number in found)
            self.add(what, f"CPU mean {average} us, p50 {median} us, p99 {most} us", bar,
                     found[0] <= 20)

    def feeds(self, what, name, bar, needed):
        """The entries of a trainer's result by their feed; None and a row if one is missing."""
        step, trouble = self.step(name)
        result = step.result if step else None
        feeds = {}
        for entry in result if isinstance(result, list) else [result]:
            if isinstance(entry, dict):
                feeds.setdefault(entry.get("feed"), []).append(entry)
        measured = {feed: [entry for entry in entries if rate_of(entry)]
                    for feed, entries in feeds.items()}
        for feed in needed:
            if not measured.get(feed):
                failed = [str(entry["failed"]) for entry in feeds.get(feed, [])
                          if "failed" in entry]
                why = f"{feed}: {failed[0]}" if failed else trouble
                self.not_measured(name, what, bar, why or f"{feed}: the result has no rate")
                return None
        return measured

    def resnet18(self):
        for size in (128, 256):
            name, bar = f"resnet18_{size}", ">= 99% of synthetic"
            what = f"ResNet-18 training, batches of {size}"
            feeds = self.feeds(what, name, bar, ("millrace", "synthetic"))
            if not feeds:
                continue
            ours, synthetic = (mean(feeds[feed]) for feed in ("millrace", "synthetic"))
            self.add(what, f"{ours:.0f} images/s with millrace, {synthetic:.0f} with synthetic "
                     f"batches: {100 * ours / synthetic:.1f}%{self.beside_cache()}", bar,
                     ours >= 0.99 * synthetic)
            idle = feeds["millrace"][0].get("idle")
            floor = feeds["synthetic"][0].get("idle")
            if isinstance(idle, (int, float)):
                beside = isinstance(floor, (int, float))
                self.add(f"device idle, {what}", f"{100 * idle:.3f}%" + (
                    f" (synthetic batches {100 * floor:.3f}%)" if beside else ""))

    def torchvision(self):
        what = "ResNet-18 training from Python"
        feeds = self.feeds(what, "python", "", ("millrace", "synthetic"))
        if feeds:
            theirs = feeds.get("torchvision")
            self.add(what, f"{mean(feeds['millrace']):.0f} images/s with millrace, "
                     f"{mean(feeds['synthetic']):.0f} with synthetic batches, "
                     f"{f'{mean(theirs):.0f}' if theirs else 'not measured'} with torchvision's "
                     f"loader"
                     f"{self.beside_cache()}")

    def worker_counts(self):
        return sorted(
            int(name.split("_")[1]) for name in self.steps if re.fullmatch(r"scaling_\d+", name))

    def scaling(self):
        """The loader's rates beside those of T, libjpeg-turbo's plain decode, on as many threads.
        """
        rates = {}
        for count in self.worker_counts():
            what = f"rate of {count} worker{'s' if count > 1 else ''}"
            found = self.numbers(what, f"scaling_{count}", "", ("ceiling", "samples_per_second"),
                                 ("ceiling", "reference_images_per_second"))
            if found and min(found) > 0:
                rates[count] = found
                self.add(what, f"{found[0]:.0f} samples/s, T {found[1]:.0f} images/s: "
                         f"{found[0] / found[1]:.2f} x T{self.beside_cache()}")
        most = max(self.worker_counts(), default=0)
        what, bar = f"scaling from 1 to {most} workers, of T's own", ">= 90%"
        if 1 not in rates or most not in rates or most < 2:
            self.not_measured("scaling_1", what, bar, "it takes the rates of 1 and of all workers")
            return
        loader, reference = (rates[most][n] / rates[1][n] for n in (0, 1))
        self.add(what, f"{100 * loader / reference:.1f}% ({loader:.2f} times, T {reference:.2f})",
                 bar, loader >= 0.9 * reference)

    def latency(self):
        """Rows for the benchmarks of the driver's calls, not of kernels."""
        for what, name, counters in (
                ("pinned allocation", "Pinned", {"ms_per_gib": " ms/GiB"}),
                ("launch of another thread, slots freed behind a 200 ms kernel", "Launch",
                 {"p50_us": " us p50", "p99_us": " us p99", "max_us": " us at most"})):
            step, trouble = self.step("latency")
            runs = None if trouble else step.value("benchmarks")
            told = [run for run in runs or [] if isinstance(run, dict) and str(
                run.get("name")).startswith(name) and any(key in run for key in counters)]
            if not told:
                self.not_measured("latency", what, "", trouble or
                                  f"the result has no {', '.join(counters)}")
            for run in told:
                self.add(f"{what}: {short_name(run)}", ", ".join(
                    figure(run[key]) + unit for key, unit in counters.items()
                    if isinstance(run.get(key), (int, float))))

    def soak(self):
        self.value("memory grows in a soak", "soak", ("rss_growth_mb",), " MB",
                   f"<= {RSS_GROWTH_MB}", lambda n: n <= RSS_GROWTH_MB)
        self.value("device memory grows in a soak", "soak", ("device_memory_growth_mb",), " MB",
                   f"<= {DEVICE_GROWTH_MB}", lambda n: n <= DEVICE_GROWTH_MB)
        self.value("soak", "soak", ("seconds",), " s", ">= 55", lambda n: n >= 55)
        self.value("device idle in a soak", "soak", ("device_idle_percent",), "%")

    def ncu(self):
        """The row of a kernel that ncu profiled, from its CSV."""
        for kernel in ("convert", "mix"):
            what = f"ncu, {kernel} kernel"
            step, trouble = self.step(f"ncu_{kernel}")
            lines = [] if trouble else [
                line for line in step.out.splitlines() if line.startswith('"')]
            entries = list(csv.DictReader(lines))
            told = [f"{entry.get('Metric Name')} {entry.get('Metric Value')} "
                    f"{entry.get('Metric Unit')}" for entry in entries if entry.get("Metric Name")]
            if not told:
                self.not_measured(f"ncu_{kernel}", what, "",
                                  trouble or "its output has no metric")
            else:
                self.add(what, "; ".join(told))

    def train(self):
        what, bar = "train on CUDA", "loss falls to < 1/2"
        step, trouble = self.step("train")
        losses = re.findall(r"^epoch \d+: loss ([\d.]+)", step.out, re.M) if step else []
        losses = [float(loss) for loss in losses]
        accuracies = re.findall(r"training accuracy ([\d.]+)%", step.out) if step else []
        if trouble or len(losses) < 2 or not accuracies or not re.search(
                r"^on cuda:", step.out, re.M):
            self.not_measured("train", what, bar, trouble or "its output has no epochs on cuda")
        else:
            measured = (f"loss {losses[0]:.3f} -> {losses[-1]:.3f}, accuracy {accuracies[-1]}%, "
                        f"{step.seconds:.0f} s")
            self.add(what, measured, bar, losses[-1] < losses[0] / 2)

    def fill(self):
        self.machine()
        self.tests("tests on the device", "gpu_tests")
        self.tests("no blocking calls, as CUPTI sees them", "gpu_calls")
        for name, what in SANITIZERS.items():
            self.sanitizer(f"compute-sanitizer {what}", name)
        self.kernels()
        self.gemm_runs()
        self.resnet18()
        self.torchvision()
        self.spin()
        self.scaling()
        self.latency()
        self.soak()
        self.ncu()
        self.train()
        return self.rows


def rows_of(steps, load, quick):
    """`load` has the GPU's facts under load, if they were queried."""
    return Table(steps, load, quick).fill()
