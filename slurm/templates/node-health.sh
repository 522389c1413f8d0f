#!/bin/bash
# For slurm.conf: HealthCheckProgram (takes the node out of service) or, as prolog, ends with the
# code of `trireme health` (Slurm then drains the node by itself and requeues the job).
#   HealthCheckProgram=/usr/local/sbin/node-health.sh
#   HealthCheckInterval=3600
#   HealthCheckNodeState=IDLE
# The node's own measure: trireme health --save-baseline /etc/trireme/node.baseline
set -u
node=${SLURMD_NODENAME:-$(hostname -s)}
finding=$(timeout --kill-after=5 40 trireme health --baseline /etc/trireme/node.baseline 2>&1)
code=$?
# Only the node's own failure counts, or that it was not done in time: not that the program, its
# file system or the baseline is not there.
if [[ $code != 4 && $code != 124 && $code != 137 ]]; then
  [[ $code == 0 ]] || logger -t trireme-health -- "not measured ($code): $finding"
  exit 0
fi
if [[ -z ${SLURM_JOB_ID:-} ]]; then  # not a prolog
  timeout 30 scontrol update NodeName="$node" State=DRAIN Reason="trireme: ${finding:0:200}"
fi
exit "$code"
