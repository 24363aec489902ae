#!/usr/bin/env bash
# Fetches NVIDIA's compilers and disassembler from PyPI into ./oracles, for tests that compare against
# them. Nothing of it is needed to build or to use lanescope, and nothing of it may be committed.
# Running it again is cheap: it does nothing once the pinned versions are in place.
#
#   .ci/oracles.sh [--wheel] [DIRECTORY]     default: oracles/ in the repository root
#
# With --wheel also the cubins of a public library, for the disassembler's test.
set -euo pipefail

wheel=
if [ "${1:-}" = --wheel ]; then
    wheel=bitsandbytes==0.49.2
    shift
fi
root=$(cd "$(dirname "$0")/.." && pwd)
dir=${1:-${LANESCOPE_ORACLES:-$root/oracles}}
pins=(
    nvidia-cuda-nvrtc-cu12==12.9.86
    nvidia-cuda-nvcc-cu12==12.9.86
    nvidia-cuda-runtime-cu12==12.9.79
    nvidia-cuda-cccl-cu12==12.9.27
    nvidia-cuda-nvrtc==13.5.37
    nvidia-cuda-nvcc==13.5.37
    nvidia-cuda-runtime==13.5.37
    nvidia-cuda-cccl==13.3.5.0.6
    nvidia-cuda-nvdisasm==13.5.37
    nvidia-cuda-cuobjdump==13.5.37
)

mkdir -p "$dir"
stamp=$dir/pins.txt
if [ "$(cat "$stamp" 2>/dev/null || true)" != "${pins[*]}" ]; then
    [ -x "$dir/venv/bin/python3" ] || python3 -m venv "$dir/venv"
    # Of what these depend on only the headers of the runtime and of libcu++ are needed, pinned above.
    "$dir/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps "${pins[@]}"
    echo "${pins[*]}" >"$stamp"
fi

# Fixed names, wherever the wheels put the files.
mkdir -p "$dir/bin" "$dir/lib"
link() { # link PATTERN NAME
    local found
    found=$(find "$dir/venv" -path "$1" -print -quit)
    [ -n "$found" ] || { echo "oracles.sh: no $1 in $dir/venv" >&2; exit 1; }
    ln -sfn "$found" "$dir/$2"
    echo "$dir/$2"
}
link '*/cuda_nvrtc/lib/libnvrtc.so.12' lib/libnvrtc-12.9.so
link '*/cu13/lib/libnvrtc.so.13' lib/libnvrtc-13.so
link '*/cuda_nvcc/bin/ptxas' bin/ptxas-12.9
link '*/cu13/bin/ptxas' bin/ptxas-13
link '*/cu13/bin/nvdisasm' bin/nvdisasm
link '*/cu13/bin/cuobjdump' bin/cuobjdump
link '*/nvidia/cuda_runtime/include' include-12.9
link '*/nvidia/cu13/include' include-13
link '*/nvidia/cuda_cccl/include' cccl-12.9
link '*/nvidia/cu13/include/cccl' cccl-13

# Later disassemblers know nothing older than sm_75; the last that does comes inside a wheel.
if [ ! -x "$dir/bin/nvdisasm-12.8" ]; then
    triton=$(mktemp -d)
    "$dir/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --python-version 3.11 --platform manylinux_2_27_x86_64 --platform manylinux_2_28_x86_64 \
        --dest "$triton" triton==3.5.1
    python3 -m zipfile -e "$triton"/*.whl "$triton"
    install -m 755 "$triton/triton/backends/nvidia/bin/nvdisasm" "$dir/bin/nvdisasm-12.8"
    rm -rf "$triton"
fi
echo "$dir/bin/nvdisasm-12.8"

if [ -n "$wheel" ] && [ "$(cat "$dir/wheel.txt" 2>/dev/null || true)" != "$wheel" ]; then
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    "$dir/venv/bin/pip" download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
        --platform manylinux_2_24_x86_64 --dest "$work" "$wheel"
    python3 -m zipfile -e "$work"/*.whl "$work"
    mkdir -p "$dir/wheel"
    for cuda in 129 130; do
        (cd "$dir/wheel" && PATH="$dir/bin:$PATH" "$dir/bin/cuobjdump" -xelf all \
            "$work/bitsandbytes/libbitsandbytes_cuda$cuda.so" >/dev/null)
    done
    echo "$wheel" >"$dir/wheel.txt"
fi
