#!/bin/bash
# For slurm.conf: HealthCheckProgram (takes the node out of service) or, as prolog, ends with the
# code of `trireme health` (Slurm then drains the node by itself and requeues the job).
#   HealthCheckProgram=/usr/local/sbin/node-health.sh
#   HealthCheckInterval=3600
#   HealthCheckNodeState=IDLE
# Create the node's baseline with: trireme health --save-baseline /etc/trireme/node.baseline
set -u
# slurmd starts it without PATH. The program is looked for in the system's folders, in /opt/trireme,
# and where the program was installed that this file belongs to (also through a link to it).
here=$(dirname "$(readlink -f "$0")")
export PATH="$PATH:/opt/trireme/bin:${here%/share/trireme}/bin"
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
