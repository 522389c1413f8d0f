#!/bin/bash
# For slurm.conf: HealthCheckProgram (takes the node out of service) or, as prolog, ends with the
# code of `trireme health` (Slurm then drains the node by itself and requeues the job).
#   HealthCheckProgram=/usr/local/sbin/node-health.sh
#   HealthCheckInterval=3600
#   HealthCheckNodeState=IDLE
# Create the node's baseline with: trireme health --save-baseline /etc/trireme/node.baseline
set -u
node=${SLURMD_NODENAME:-$(hostname -s)}
finding=$(timeout --kill-after=5 40 trireme health --baseline /etc/trireme/node.baseline 2>&1)
code=$?
# The node is drained only if the check failed or timed out, not if the program, its file system or
# the baseline is missing.
if [[ $code != 4 && $code != 124 && $code != 137 ]]; then
  [[ $code == 0 ]] || logger -t trireme-health -- "could not check the node ($code): $finding"
  exit 0
fi
if [[ -z ${SLURM_JOB_ID:-} ]]; then  # not a prolog
  timeout 30 scontrol update NodeName="$node" State=DRAIN Reason="trireme: ${finding:0:200}"
fi
exit "$code"
