#!/usr/bin/env python3
"""Compiles .cu files to cubins with NVRTC, for tests that compare against NVIDIA's tools.

usage: compile.py LIBNVRTC INCLUDE_DIR[:INCLUDE_DIR...] OUT_DIR ARCH[,ARCH...] FILE.cu...

Writes OUT_DIR/NAME.sm_ARCH.cubin. A cubin newer than its source is kept. Needs no GPU and no CUDA
toolkit. A file that NVRTC refuses for an architecture is reported and skipped; the exit status is 1 if
nothing was compiled.
"""

import ctypes
import os
import sys


def check(lib, code, what):
    if code:
        lib.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise RuntimeError(f"{what}: {lib.nvrtcGetErrorString(code).decode()}")


def compile_cubin(lib, source, name, arch, options=()):
    """The cubin of one source text for one architecture, `sm_90` for instance."""
    program = ctypes.c_void_p()
    check(lib, lib.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), 0, None, None), "create")
    try:
        flags = [f"--gpu-architecture={arch}", "-std=c++17", *options]
        argv = (ctypes.c_char_p * len(flags))(*(flag.encode() for flag in flags))
        code = lib.nvrtcCompileProgram(program, len(flags), argv)
        if code:
            size = ctypes.c_size_t()
            lib.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            lib.nvrtcGetProgramLog(program, log)
            raise RuntimeError(log.value.decode(errors="replace"))
        size = ctypes.c_size_t()
        check(lib, lib.nvrtcGetCUBINSize(program, ctypes.byref(size)), "size")
        cubin = ctypes.create_string_buffer(size.value)
        check(lib, lib.nvrtcGetCUBIN(program, cubin), "cubin")
        return cubin.raw
    finally:
        lib.nvrtcDestroyProgram(ctypes.byref(program))


def main():
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    library, include, out_dir, archs, *files = sys.argv[1:]
    # NVRTC finds its builtins next to itself only under its own name.
    lib = ctypes.CDLL(os.path.realpath(library))
    os.makedirs(out_dir, exist_ok=True)
    done = 0
    for path in files:
        stem = os.path.splitext(os.path.basename(path))[0]
        for arch in archs.split(","):
            target = os.path.join(out_dir, f"{stem}.{arch}.cubin")
            if os.path.exists(target) and os.path.getmtime(target) >= os.path.getmtime(path):
                done += 1
                continue
            try:
                with open(path, "rb") as file:
                    cubin = compile_cubin(lib, file.read(), os.path.basename(path), arch, [f"-I{dir}" for dir in include.split(":")])
            except RuntimeError as error:
                print(f"{path} {arch}: {error}", file=sys.stderr)
                continue
            # Whole files only: a test may be interrupted.
            with open(target + ".tmp", "wb") as file:
                file.write(cubin)
            os.replace(target + ".tmp", target)
            done += 1
    sys.exit(0 if done else 1)


main()
