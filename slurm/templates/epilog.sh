#!/bin/bash
# Epilog for slurm.conf, run as root on each node after a job:
#   Epilog=/usr/local/sbin/epilog.sh
# If the job's user has no other job on this node, removes what killed launches of this user have
# left in /dev/shm (checkpoints in memory can take much of it). Folders that an agent still holds
# stay. The removal runs as that user, so that a link planted in such a folder leads nowhere.
set -u
export PATH  # slurmd starts it without; add the folder of squeue if it is no folder of the system
node=${SLURMD_NODENAME:-$(hostname -s)}
uid=${SLURM_JOB_UID:?run by slurmd}
memory=${TRIREME_EPILOG_MEMORY:-/dev/shm}

# Without an answer of Slurm, nothing is removed.
jobs=$(timeout 20 squeue --noheader --nodelist="$node" --user="$uid" \
  --states=running,completing,suspended --format=%A 2> /dev/null) || exit 0
for job in $jobs; do
  [[ $job == "${SLURM_JOB_ID:-}" ]] || exit 0
done

gid=$(id -g "$uid" 2> /dev/null) || gid=$uid
for folder in "$memory/trireme-$uid"-*; do
  [[ -d $folder && ! -L $folder ]] || continue
  # shellcheck disable=SC2016  # the inner shell expands its arguments
  if setpriv --reuid="$uid" --regid="$gid" --clear-groups timeout 30 bash -c \
    '[[ -f $1/lock && ! -L $1/lock ]] && flock -n "$1/lock" rm -rf --one-file-system -- "$1"' \
    epilog "$folder"; then
    logger -t trireme-epilog -- "$node: removed $folder, left over from job ${SLURM_JOB_ID:-}"
  fi
done
exit 0
