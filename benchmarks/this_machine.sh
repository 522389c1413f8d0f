#!/usr/bin/env bash
# this_machine.sh PROGRAM FOLDER: measures this machine with `PROGRAM bench`, one question after the
# other, and writes the results to FOLDER: about 6 minutes on two cores (`./dev bench`).
set -euo pipefail
program=$1
folder=$2
mkdir -p "$folder"
for question in step gemm mem noise loader ckpt; do
  echo "dev: bench $question" >&2
  "$program" bench "$question" -J "$folder/$question.json"
done
echo "dev: bench coll, four operations compared with MPI" >&2
mpirun -n 2 "$program" bench coll --peer mpi -b 16 -e 256M -f 16 \
  --op all_reduce,reduce_scatter,all_gather,all_to_all -J "$folder/coll.json"
