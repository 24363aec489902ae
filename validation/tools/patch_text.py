"""Rewrites single 128-bit instructions of a kernel in a cubin, keeping their scheduling bits.

Used where ptxas emits no such code: a barrier without the WARPSYNC before it (kernel.raw),
a YIELD where the source has `__nanosleep(123)`, a guarded SHFL (kernel.guarded).
"""
import struct

SCHEDULING = ((1 << 64) - 1) << 41 & ((1 << 64) - 1)  # of the high word
NOP, YIELD = 0x7918, 0x7946


def sections(cubin):
    """Section name -> (offset, size)."""
    table, = struct.unpack_from("<Q", cubin, 40)
    count, names = struct.unpack_from("<HH", cubin, 60)
    heads = [struct.unpack_from("<IIQQQQIIQQ", cubin, table + 64 * i) for i in range(count)]
    base = heads[names][4]
    name = lambda at: cubin[base + at : cubin.index(b"\0", base + at)].decode()
    return {name(h[0]): (h[4], h[5]) for h in heads}


def patch(cubin, kernel, edit):
    """edit(pc, low, high) gives the new pair of words, or None to leave the instruction."""
    out, changed = bytearray(cubin), 0
    start, size = sections(cubin)[".text." + kernel]
    for pc in range(0, size, 16):
        new = edit(pc, *struct.unpack_from("<QQ", out, start + pc))
        if new:
            struct.pack_into("<QQ", out, start + pc, *new)
            changed += 1
    return bytes(out), changed


def to_nop(low, high):
    return NOP, high & SCHEDULING


def to_yield(low, high):
    return YIELD, high & SCHEDULING | 0x3800000
