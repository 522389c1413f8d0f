#!/bin/bash
# Prolog for slurm.conf, run as root on each node before the first step of a job:
#   Prolog=/usr/local/sbin/prolog.sh
# Refuses a node that has lost a file system or whose memory file system is nearly full, in well
# under a second. A code other than 0 makes Slurm drain the node and requeue the job, held unless
# slurm.conf has SchedulerParameters=nohold_on_prolog_fail. The measurement of node-health.sh takes
# up to 30 s: run that as HealthCheckProgram.
set -u
export PATH  # slurmd starts it without
node=${SLURMD_NODENAME:-$(hostname -s)}
least=${TRIREME_PROLOG_LEAST_MIB:-256}  # free, in MiB
# Folders that every job needs, for example those of datasets and checkpoints.
read -ra folders <<< "${TRIREME_PROLOG_FOLDERS:-/dev/shm /tmp}"

for folder in "${folders[@]}"; do
  # A file system whose server is gone would hang the prolog.
  if ! free=$(timeout --kill-after=1 10 df --output=avail -m "$folder" 2> /dev/null | tail -n 1) ||
    [[ ! $free =~ ^[[:space:]]*[0-9]+$ ]]; then
    logger -t trireme-prolog -- "$node: $folder does not answer"
    exit 1
  fi
  if ((free < least)); then
    logger -t trireme-prolog -- "$node: $folder has $free MiB free, less than $least"
    exit 1
  fi
done
exit 0
