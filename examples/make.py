#!/usr/bin/env python3
"""Writes the launch files of the examples and the arrays they need.

    make.py [--size N] [--only NAME,...] [DIR]     needs NumPy

Without arguments it makes what the repository holds. `--size full` (or a number of items) makes the same launches in
another size, with paths to the cubins beside this file: `full` are the sizes measured in docs/measured.md.

A case is a launch in its natural order; its sorted twin has the arrays of its items permuted by a key. The sorted twin
of a case whose key is a result (`key = "out"`) needs that result: it is computed here by a scalar model.
"""

import argparse
import os

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
TYPES = {"i32": np.int32, "u32": np.uint32, "f32": np.float32, "u8": np.uint8}


def r(n, seed):
    """The documented stream of `random` arguments."""
    x = (np.arange(n, dtype=np.uint64) * 0x9E3779B9 + seed).astype(np.uint32)
    x ^= x >> np.uint32(16)
    x *= np.uint32(0x7FEB352D)
    x ^= x >> np.uint32(15)
    x *= np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


class Random:
    """An argument that the launch file describes in words, and its elements."""

    def __init__(self, dtype, length, seed, low=None, high=None):
        self.dtype, self.length, self.seed, self.low, self.high = dtype, length, seed, low, high

    def toml(self):
        bounds = "" if self.low is None else f", low = {self.low}, high = {self.high}"
        return f'random = {{ dtype = "{self.dtype}", len = {self.length}, seed = {self.seed}{bounds} }}'

    def array(self):
        x = r(self.length, self.seed)
        if self.dtype == "f32":
            low, high = (0.0, 1.0) if self.low is None else (self.low, self.high)
            return (low + (high - low) * (x / 4294967296.0)).astype(np.float32)
        if self.low is None:
            return x.astype(TYPES[self.dtype])
        return (self.low + (x % np.uint32(self.high - self.low)).astype(np.int64)).astype(TYPES[self.dtype])


class Zeros:
    def __init__(self, dtype, length):
        self.dtype, self.length = dtype, length

    def toml(self):
        return f'zeros = {{ dtype = "{self.dtype}", len = {self.length} }}'

    def array(self):
        return np.zeros(self.length, TYPES[self.dtype])


class Case:
    """A launch. `args` are pairs of name and value; `items` names the arrays with an element (or a column) per thread;
    those in `wide` have all words of an item together, other ones with several words an item have them in columns. `key`
    names the array to sort by: among `args`, or computed (`keys`)."""

    def __init__(self, folder, cubin, kernel, threads, args, items=(), key=None, keys=None, block=256, grid=None,
                 note="", wide=(), stem=None):
        self.folder, self.cubin, self.kernel, self.threads, self.note = folder, cubin, kernel, threads, note
        self.args, self.items, self.key, self.keys, self.wide = list(args), items, key, keys, wide
        self.stem = stem or cubin.split(".")[0]
        self.block = [block, 1, 1] if isinstance(block, int) else block
        self.grid = grid or [-(-threads // self.block[0]), 1, 1]

    def arrays(self):
        """All buffers, by name."""
        return {n: v if isinstance(v, np.ndarray) else v.array() for n, v in self.args if not isinstance(v, (int, float))}

    def order(self):
        """Items by ascending key, equal ones as they were."""
        key = self.keys if self.keys is not None else dict(self.args)[self.key]
        key = key if isinstance(key, np.ndarray) else key.array()
        return np.argsort(key, kind="stable").astype(np.int32)

    def dealt(self, order):
        """The same warps, dealt to the blocks like cards: each block gets some of the long ones."""
        warps, blocks = order.reshape(-1, 32), self.grid[0]
        return warps.reshape(-1, blocks, 32).transpose(1, 0, 2).reshape(-1)

    def windows(self, size):
        """Items by ascending key within windows of neighbours."""
        key = self.keys if self.keys is not None else dict(self.args)[self.key]
        key = key if isinstance(key, np.ndarray) else key.array()
        window = np.arange(len(key)) // size
        return np.lexsort((np.arange(len(key)), key, window)).astype(np.int32)

    def permuted(self, order):
        """The same case with its items in another order."""
        args = []
        for name, value in self.args:
            if name in self.items and not isinstance(value, Zeros):
                x = value if isinstance(value, np.ndarray) else value.array()
                if name in self.wide:
                    value = np.ascontiguousarray(x.reshape(len(order), -1)[order]).reshape(-1)
                else:
                    value = np.ascontiguousarray(x.reshape(-1, len(order))[:, order]).reshape(-1)
            args.append((name, value))
        return Case(self.folder, self.cubin, self.kernel, self.threads, args, self.items, self.key, None, self.block[0], self.grid, self.note,
                    stem=self.stem)

    def write(self, base, name, twin=False):
        """Writes `NAME.toml` and the arrays that it needs; only a sorted twin has its own."""
        folder = os.path.join(base, self.folder)
        os.makedirs(folder, exist_ok=True)
        cubin = os.path.relpath(os.path.join(HERE, self.folder, self.cubin), folder)
        lines = [f"# {line}" for line in self.note.splitlines()]
        lines += [f'module = "{cubin}"', f'kernel = "{self.kernel}"', f"grid = {self.grid}", f"block = {self.block}"]
        for arg, value in self.args:
            lines += ["", "[[arg]]", f'name = "{arg}"']
            if isinstance(value, np.ndarray):
                own = f"{name if twin and arg in self.items else self.stem}.{arg}.npy"
                np.save(os.path.join(folder, own), value)
                lines.append(f'npy = "{own}"')
            elif isinstance(value, int):
                lines.append(f"i32 = {value}")
            elif isinstance(value, float):
                lines.append(f"f32 = {value}")
            else:
                lines.append(value.toml())
        with open(os.path.join(folder, f"{name}.toml"), "w") as file:
            file.write("\n".join(lines) + "\n")


def skewed(n, seed, least, exponent, most):
    """Lengths with a long tail: Pareto, cut at `most`."""
    u = (r(n, seed).astype(np.float64) + 0.5) / 4294967296.0
    return np.minimum(least * u ** (-1.0 / exponent), most).astype(np.int32)


def starts(lengths):
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def materials(n):
    return Case("materials", "materials.sm_90.cubin", "shade", n, [
        ("material", Random("i32", n, 1, 0, 8)), ("cosine", Random("f32", n, 2, 0.05, 1.0)), ("u", Random("f32", n, 3)),
        ("v", Random("f32", n, 4)), ("radiance", Zeros("f32", n)), ("hits", n)],
        ("material", "cosine", "u", "v", "radiance"), "material", note="Hits on eight materials, as the pixels come.")


def particles(n):
    return Case("particles", "particles.sm_90.cubin", "step", n, [
        ("kind", Random("i32", n, 1, 0, 4)), ("x", Random("f32", n, 2)), ("y", Random("f32", n, 3)),
        ("vx", Random("f32", n, 4, -3.0, 3.0)), ("vy", Random("f32", n, 5, -3.0, 3.0)), ("dt", 0.25), ("particles", n)],
        ("kind", "x", "y", "vx", "vy"), "kind", note="Four kinds of particles in the order of their birth.")


def routing(n, kernel="route"):
    # Popular experts get more: the square of a uniform number.
    expert = ((r(n, 1) / 4294967296.0) ** 2 * 16).astype(np.int32)
    return Case("moe", "routing.sm_90.cubin", kernel, n, [
        ("expert", expert), ("token", Random("f32", 8 * n, 2, -1.0, 1.0)), ("weight", Random("f32", 16 * 32 * 8, 3, -0.5, 0.5)),
        ("out", Random("f32", 16 * 32, 4, -0.5, 0.5)), ("y", Zeros("f32", n)), ("pairs", n), ("experts", 16)],
        ("expert", "token", "y"), "expert", note="(token, expert) pairs of 16 experts in the order of arrival; low numbers are popular.")


def rows(n, kernel="ordered", most=2000):
    lengths = skewed(n, 1, 2.5, 1.2, most)
    row_start, nnz = starts(lengths), int(lengths.sum())
    args = [("y", Zeros("f32", n)), ("order", np.arange(n, dtype=np.int32)), ("row_start", row_start),
            ("column", Random("i32", nnz, 3, 0, n)), ("value", Random("f32", nnz, 4, -1.0, 1.0)),
            ("x", Random("f32", n, 5, -1.0, 1.0)), ("rows", n)]
    if kernel == "ordered":
        return Case("spmv", "rows.sm_90.cubin", kernel, n, args, ("order",), None, lengths,
                    note=f"Rows of unequal length, at most {most}, in their natural order.", stem="rows" if most == 2000 else "short")
    lanes = {"eight_lanes": 8, "warp": 32}[kernel]
    del args[1]
    return Case("spmv", "rows.sm_90.cubin", kernel, n * lanes, args, note=f"The same rows, {lanes} lanes for each.")


def strings(n, kernel="count", most=4000):
    lengths = skewed(n, 1, 12.0, 1.3, most)
    offset = starts(lengths)
    args = [("offset", offset[:-1].copy()), ("length", lengths), ("text", Random("u8", int(offset[-1]), 3, 32, 127)),
            ("tokens", Zeros("i32", n)), ("strings", n)]
    if kernel == "count":
        return Case("tokenizer", "strings.sm_90.cubin", kernel, n, args, ("offset", "length", "tokens"), "length",
                    note=f"Strings of unequal length, at most {most}, in the order of a column.", stem="strings" if most == 4000 else "names")
    return Case("tokenizer", "strings.sm_90.cubin", kernel, n * 32, args, note="The same strings, a warp for each.")


def frontier(n):
    vertices = 2 * n
    degree = skewed(vertices, 1, 3.0, 1.3, 1000)
    row_start = starts(degree)
    # A frontier holds each vertex at most once: an odd step walks through all of them.
    step = 2 * (vertices // 5) + 1
    while np.gcd(step, vertices) != 1:
        step += 2
    list_ = (np.arange(n, dtype=np.int64) * step % vertices).astype(np.int32)
    return Case("frontier", "frontier.sm_90.cubin", "expand", n, [
        ("frontier", list_), ("row_start", row_start), ("neighbour", Random("i32", int(row_start[-1]), 3, 0, vertices)),
        ("next", Zeros("u8", vertices)), ("size", n)], ("frontier",), None, degree[list_],
        note="Half of a graph's vertices, with very unequal degrees, as a search found them.")


def escape_trips(re, im, limit):
    """The kernel's loop; float32 arithmetic without fused operations, so a few trips may differ from the kernel's."""
    zr, zi = np.zeros_like(re), np.zeros_like(im)
    trips = np.zeros(len(re), np.int32)
    live = np.ones(len(re), bool)
    for _ in range(limit):
        live &= zr * zr + zi * zi < 4
        if not live.any():
            break
        t = zr * zr - zi * zi + re
        zi = np.where(live, 2 * zr * zi + im, zi)
        zr = np.where(live, t, zr)
        trips += live
    return trips


def points(n):
    re, im = Random("f32", n, 1, -2.0, 0.5), Random("f32", n, 2, -1.25, 1.25)
    with np.errstate(all="ignore"):
        trips = escape_trips(re.array(), im.array(), 256)
    return Case("points", "points.sm_90.cubin", "escape", n, [
        ("re", re), ("im", im), ("trips", Zeros("i32", n)), ("limit", 256), ("points", n)],
        ("re", "im", "trips"), "trips", trips, note="Points in random order.")


def probe(n):
    # A stream without repetitions fills 15 of 16 slots of a table of as many slots as there are lookups.
    bits = int(n).bit_length() - 1
    slots = 1 << bits
    stored = r(slots * 15 // 16, 77)
    assert (stored != 0).all()
    home = ((stored * np.uint32(2654435769)) >> np.uint32(32 - bits)).astype(np.int64)
    by_home = np.argsort(home, kind="stable")
    h = home[by_home]
    # With keys inserted by home, key i lands at max(home, the slot after key i - 1).
    place = np.maximum.accumulate(h - np.arange(len(h))) + np.arange(len(h))
    table = np.zeros(max(slots, int(place[-1]) + 1) + 64, np.uint32)
    table[place] = stored[by_home]
    key = stored[r(n, 1) % np.uint32(len(stored))]
    length = np.empty(len(stored), np.int32)
    length[by_home] = (place - h + 1).astype(np.int32)
    probes = length[r(n, 1) % np.uint32(len(stored))]
    return Case("probe", "probe.sm_90.cubin", "lookup", n, [
        ("key", key), ("table", table), ("probes", Zeros("i32", n)), ("bits", bits), ("keys", n)],
        ("key", "probes"), "probes", probes, note="Lookups in a table that is 15/16 full.")


def interpreter(n):
    return Case("interpreter", "interpreter.sm_90.cubin", "interpret", n, [
        ("program", Random("i32", n, 1, 0, 12)), ("code", Random("u8", 12 * 24, 2, 0, 8)), ("input", Random("f32", n, 3, -2.0, 2.0)),
        ("output", Zeros("f32", n)), ("items", n)], ("program", "input", "output"), "program",
        note="Twelve programs of 24 operations, one for each item.")


def integrate_steps(centre, width, tolerance):
    """The kernel's loop; float32 arithmetic without fused operations, so a few counts may differ from the kernel's."""
    f = np.float32
    peak = lambda x: f(1) / ((x - centre) ** 2 + width * width)
    n = len(centre)
    x, h, f0 = np.zeros(n, f), np.full(n, f(0.125)), peak(np.zeros(n, f))
    steps = np.zeros(n, np.int32)
    for _ in range(4096):
        live = x < 1
        if not live.any():
            break
        steps += live
        hh = np.minimum(h, f(1) - x)
        f1, f2 = peak(x + f(0.5) * hh), peak(x + hh)
        simpson = hh * (f0 + f(4) * f1 + f2) * f(0.16666667)
        halve = (np.abs(f(0.5) * hh * (f0 + f2) - simpson) > f(tolerance) * simpson) & (hh > f(1e-5))
        on = live & ~halve
        x = np.where(on, x + hh, x)
        f0 = np.where(on, f2, f0)
        h = np.where(live & halve, hh * f(0.5), np.where(on, hh * f(1.5), h)).astype(f)
    return steps


def integrate(n):
    centre, width = Random("f32", n, 1), Random("f32", n, 2, 0.005, 0.5)
    steps = integrate_steps(centre.array(), width.array(), 0.01)
    return Case("integrate", "integrate.sm_90.cubin", "integrate", n, [
        ("centre", centre), ("width", width), ("area", Zeros("f32", n)), ("steps", Zeros("i32", n)), ("tolerance", 0.01), ("threads", n)],
        ("centre", "width", "area", "steps"), "steps", steps, block=128, note="Peaks of unequal sharpness.")


def rejection(n, kernel="nested"):
    return Case("rejection", "rejection.sm_90.cubin", kernel, n, [
        ("seed", Random("u32", n, 1)), ("shape", Random("f32", n, 2, 1.0, 1.5)), ("sum", Zeros("f32", n)), ("samples", 32), ("threads", n)],
        note={"nested": "A loop over samples around a loop over attempts.", "flat": "One loop over attempts."}[kernel])


def streams(n):
    floats = ["amount", "fee", "rate", "spread", "tax", "days", "bonus"]
    return Case("streams", "streams.sm_90.cubin", "convert", n, [
        ("currency", Random("i32", n, 1, 0, 4)), *[(name, Random("f32", n, 2 + k, 0.1, 2.0)) for k, name in enumerate(floats)],
        ("net", Zeros("f32", n)), ("gross", Zeros("f32", n)), ("entries", n)],
        ("currency", *floats, "net", "gross"), "currency", note="Entries of a ledger in four currencies, as they were booked.")


def quarters(n):
    return Case("streams", "streams.sm_90.cubin", "quarters", n, [
        ("currency", Random("i32", n, 1, 0, 4)), *[(name, Random("f32", 4 * n, 2 + k, 0.1, 2.0)) for k, name in enumerate(["amount", "fee", "rate", "tax"])],
        ("net", Zeros("f32", 4 * n)), ("entries", n)],
        ("currency", "amount", "fee", "rate", "tax", "net"), "currency", note="Entries with four quarters each, as they were booked.",
        wide=("amount", "fee", "rate", "tax", "net"))


def stencil(n):
    width = 1 << ((int(n).bit_length()) // 2)
    width, height = width - 7, n // width - 3
    return Case("stencil", "stencil.sm_90.cubin", "heat", width * height, [
        ("before", Random("f32", width * height, 1)), ("after", Zeros("f32", width * height)), ("width", width), ("height", height), ("rate", 0.2)],
        block=[32, 8, 1], grid=[-(-width // 32), -(-height // 8), 1], note="A plate whose sides are no multiples of the tile's.")


# Name: the case, the name of its launch and of its sorted twin, items here and when measured.
CASES = {
    "materials": (materials, "pixels", "sorted", 4096, 1 << 22),
    "particles": (particles, "birth", "sorted", 4096, 1 << 22),
    "routing": (routing, "arrival", "sorted", 2048, 1 << 20),
    "routing-ballot": (lambda n: routing(n, "route_ballot"), "ballot", None, 2048, 1 << 20),
    "rows": (rows, "thread", "sorted", 2048, 1 << 20),
    "rows-short": (lambda n: rows(n, most=64), "short", "short_sorted", 2048, 1 << 20),
    "rows-eight": (lambda n: rows(n, "eight_lanes"), "eight_lanes", None, 2048, 1 << 20),
    "rows-warp": (lambda n: rows(n, "warp"), "warp", None, 2048, 1 << 20),
    "strings": (strings, "column", "sorted", 2048, 1 << 20),
    "names": (lambda n: strings(n, most=96), "names", "names_sorted", 2048, 1 << 20),
    "strings-warp": (lambda n: strings(n, "count_by_warp"), "warp", None, 2048, 1 << 20),
    "frontier": (frontier, "found", "sorted", 2048, 1 << 21),
    "points": (points, "random", "sorted", 4096, 1 << 22),
    "probe": (probe, "lookups", "sorted", 4096, 1 << 22),
    "interpreter": (interpreter, "mixed", "sorted", 4096, 1 << 22),
    "integrate": (integrate, "mixed", "sorted", 4096, 1 << 21),
    "rejection": (rejection, "nested", None, 4096, 1 << 22),
    "rejection-flat": (lambda n: rejection(n, "flat"), "flat", None, 4096, 1 << 22),
    "streams": (streams, "booked", "sorted", 4096, 1 << 24),
    "quarters": (quarters, "quarters", "quarters_sorted", 4096, 1 << 24),
    "stencil": (stencil, "plate", None, 16384, 1 << 24),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="small", help="small, full, or a number of items")
    parser.add_argument("--order", default="up", help="of the sorted twins: up, down, dealt, dealt-down, or the size of windows")
    parser.add_argument("--only", help="names of cases, separated by commas")
    parser.add_argument("dir", nargs="?", default=HERE)
    args = parser.parse_args()
    for name, (make, launch, twin, small, full) in CASES.items():
        if args.only and name not in args.only.split(","):
            continue
        case = make({"small": small, "full": full}.get(args.size) or int(args.size))
        case.write(args.dir, launch)
        if twin:
            if args.order.isdigit():
                order = case.windows(int(args.order))
            else:
                order = case.order()
                order = order[::-1].copy() if "down" in args.order else order
                order = case.dealt(order) if "dealt" in args.order else order
            after = case.permuted(order)
            after.note = "The same, sorted."
            after.write(args.dir, twin, twin=True)


if __name__ == "__main__":
    main()
