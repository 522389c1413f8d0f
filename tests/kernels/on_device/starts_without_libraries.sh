#!/bin/sh
# starts_without_libraries.sh PROGRAM: fails unless the program, a GoogleTest, starts and is linked
# with no library of CUDA.
set -eu
libraries=$(ldd "$1")
if printf '%s\n' "$libraries" | grep -E 'lib(cuda|cublas|nccl|nv)'; then
  echo "$1 is linked with the libraries of CUDA above, which nodes without GPUs lack" >&2
  exit 1
fi
"$1" --gtest_list_tests >/dev/null
