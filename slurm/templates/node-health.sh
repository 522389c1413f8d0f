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
[[ $code == 0 ]] && exit 0
if [[ -z ${SLURM_JOB_ID:-} ]]; then  # not a prolog
  timeout 30 scontrol update NodeName="$node" State=DRAIN Reason="trireme: ${finding:0:200}"
fi
exit "$code"
