#!/usr/bin/env bash
# Installs what the preset `cuda` needs from the packages that NVIDIA publishes for Python: nvcc,
# cuBLASLt, NCCL, cuDNN, and nvdisasm for a test of the machine code. Takes 1.6 GB, installs no
# driver, and leaves the system's CUDA alone (docs/gpu.md).
#
# usage: install_cuda.sh DIR
set -euo pipefail

if (($# != 1)); then
  echo "usage: ./dev install-cuda DIR (a new folder)" >&2
  exit 2
fi
readonly packages=$1/packages toolkit=$1/packages/nvidia/cu13

if [[ -e $1 && -n $(ls -A "$1") ]]; then
  echo "install-cuda: $1 is not empty: name a new folder" >&2
  exit 77
fi
mkdir -p "$1"
/usr/bin/python3 -m pip install --quiet --disable-pip-version-check --root-user-action ignore \
  --target "$packages" \
  'cuda-toolkit[nvcc,crt,nvvm,cudart,cccl,cublas,nvml,nvtx]==13.0.2' nvidia-nccl-cu13==2.30.7 \
  nvidia-cudnn-cu13==9.19.0.56 nvidia-cuda-nvdisasm==13.2.51

# The linker asks for names without a version, and nvcc for a folder lib64.
for library in "$toolkit"/lib/*.so.* "$packages"/nvidia/nccl/lib/*.so.*; do
  name=$(basename "$library")
  ln -sfr "$library" "$toolkit/lib/${name%%.so.*}.so"
done
ln -sfn lib "$toolkit/lib64"
ln -sfr "$packages"/nvidia/nccl/include/nccl*.h "$packages"/nvidia/cudnn/include/cudnn*.h \
  "$toolkit/include/"
ln -sfr "$packages"/nvidia/nccl/lib/libnccl.so.2 "$toolkit/lib/"
ln -sfr "$toolkit" "$1/cuda"
"$1/cuda/bin/nvcc" --version | tail -n 2
printf 'For train.attention: cudnn, run with LD_LIBRARY_PATH=%s\n' \
  "$(realpath -s "$packages")/nvidia/cudnn/lib"
printf 'Configure with: cmake --preset cuda -DCMAKE_CUDA_COMPILER=%s\n' \
  "$(realpath -s "$1")/cuda/bin/nvcc"
