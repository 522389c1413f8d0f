#!/bin/sh
# own_mounts.sh COMMAND...: runs the command in a mount namespace of its own; nobody else sees what
# is mounted there, and it disappears with the command. In a chroot, "/" is no mount point and
# cannot be made private; that does no harm if nothing is shared. Exits with 99 if mounts would
# reach others, and with 1 if this user may not make namespaces.
exec unshare --mount --propagation unchanged sh -c '
  mount --make-rprivate / 2>/dev/null
  if grep -q " shared:" /proc/self/mountinfo; then exit 99; fi
  exec "$@"' sh "$@"
