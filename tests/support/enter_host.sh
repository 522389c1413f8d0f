#!/bin/sh
# enter_host.sh HOST COMMAND... runs a command on a host of hosts.py, for mpirun in place of ssh.
# TRIREME_HOSTS names a process in the namespaces of each host: "host0=4711 host1=4712".
host=$1
shift
for pair in $TRIREME_HOSTS; do
  if [ "${pair%%=*}" = "$host" ]; then
    # shellcheck disable=SC2016  # the inner shell expands them
    exec nsenter -t "${pair#*=}" -n -u -m -i -p -r -- sh -c 'cd "$0" && eval "$*"' "$PWD" "$@"
  fi
done
echo "enter_host.sh: there is no host '$host' among: $TRIREME_HOSTS" >&2
exit 1
