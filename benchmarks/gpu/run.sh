#!/usr/bin/env bash
# Tests and measures the CUDA back end on a machine with a GPU in less than 9 minutes (docs/gpu.md).
# Runs from a bundle of the preset `cuda`, or from the source tree after `cmake --build build/cuda`.
# Besides it needs Python 3 only. Arguments are passed on: --help lists them.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")")
python=$(command -v python3) || {
  echo "run.sh: python3 is missing" >&2
  exit 66
}

# Where a bundle leaves cuBLASLt, NCCL and cuDNN to the machine, they lie in the toolkit's folder or
# in those of PyTorch's packages.
libraries=$("$python" - <<'PY'
import glob, site, sysconfig
folders = {sysconfig.get_paths()["purelib"], *site.getsitepackages()}
found = ["/usr/local/cuda/lib64"]
for folder in sorted(folders):
    found += sorted(glob.glob(f"{folder}/nvidia/*/lib"))
print(":".join(found))
PY
)
export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$libraries"
exec "$python" "$here/suite.py" "$@"
