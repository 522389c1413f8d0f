#!/usr/bin/python3
r"""Simulates several hosts on one machine, and runs mpirun on them.

    tests/support/hosts.py --hosts 4 --ranks-per-host 2 --rate 1gbit -- PROGRAM ARGS...

A host is a set of namespaces: network, name (host0, host1, ...), processes, System V memory, and
mounts with its own /dev/shm. All are connected to one switch, where mpirun runs:

    host0 eth0 10.77.0.1 --- p0 \
    host1 eth0 10.77.0.2 --- p1  | bridge br0 10.77.0.254
    ...                         /

--rate limits every link in both directions (tc tbf), and --mtu sets the size of its packets. Rank r
runs on host r / R. The exit code is mpirun's, or 77 with the message "skipped 'why'" if the machine
does not allow this (it needs root). Everything on the hosts ends with the processes that hold their
namespaces, which end with this process, however it ends.

The following variables are set for the ranks unless they are set already. They make MPI and UCX use
TCP, since both would notice that the hosts are one machine:
    OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=eth0
    UCX_TLS=tcp,self UCX_NET_DEVICES=eth0 OMP_NUM_THREADS=1
--mpirun=ARG, which may be repeated, adds to mpirun's own arguments. --cut host1:3 disconnects host1
after 3 s. Other programs can import the class Hosts.
"""
import argparse
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SKIPPED = 77
HOST_NAMESPACES = ["-n", "-u", "-m", "-i", "-p"]
ENVIRONMENT = {
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "eth0",
    "UCX_TLS": "tcp,self",
    "UCX_NET_DEVICES": "eth0",
    "OMP_NUM_THREADS": "1",
}
# For mpirun itself: its daemons use the simulated network, and its files disappear with the hosts.
LAUNCHER_ENVIRONMENT = {
    "OMPI_MCA_plm_rsh_agent": os.path.join(HERE, "enter_host.sh"),
    "OMPI_MCA_plm_rsh_no_tree_spawn": "1",
    "OMPI_MCA_orte_leave_session_attached": "1",
    "OMPI_MCA_orte_tmpdir_base": "/dev/shm",
    "OMPI_MCA_oob_tcp_if_include": "10.77.0.0/24",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def host_namespaces():
    """Returns flags for unshare, which in a chroot cannot make mounts private, but need not do so
    if none is shared."""
    with open("/proc/self/mountinfo", encoding="utf-8") as mounts:
        shared = any(" shared:" in mount for mount in mounts)
    return HOST_NAMESPACES + ([] if shared else ["--propagation", "unchanged"])


def reason_to_skip():
    if os.geteuid() != 0:
        return "hosts need network namespaces: run as root"
    for tool in ("ip", "tc", "unshare", "nsenter", "mpirun"):
        if shutil.which(tool) is None:
            return f"hosts need the command '{tool}': run ./dev install-deps"
    probe = subprocess.run(["unshare", *host_namespaces(), "--fork", "ip", "link", "add", "br0",
                            "type", "bridge"], capture_output=True, text=True)
    return (f"hosts need namespaces (CAP_SYS_ADMIN and CAP_NET_ADMIN): {probe.stderr.strip()}"
            if probe.returncode else None)


def end_with_parent(sig):
    """Returns a function for a child before exec: the child receives the signal when this process
    dies."""
    libc = ctypes.CDLL(None, use_errno=True)
    return lambda: libc.prctl(1, sig)  # PR_SET_PDEATHSIG


class Hosts:
    """`with Hosts(4, rate="1gbit") as hosts: hosts.mpirun(2, [PROGRAM, ...])`"""

    SWITCH = "10.77.0.254"

    def __init__(self, count, rate=None, mtu=1500):
        self.names = [f"host{i}" for i in range(count)]
        self.rate = rate
        self.mtu = mtu
        self.holders = {}
        self.switch = None

    def __enter__(self):
        try:
            self.switch = self._hold(["-n"], "ip link set lo up")
            self._on(self.switch.pid, f"""
                ip link add br0 type bridge
                ip addr add {self.SWITCH}/24 dev br0
                ip link set br0 up""")
            for name in self.names:
                self.holders[name] = self._hold(host_namespaces(), self._setup(name))
                self._wire(name)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def address(self, name):
        return "127.0.0.1" if name == "localhost" else f"10.77.0.{self.names.index(name) + 1}"

    def _setup(self, name):
        table = "".join(f"{self.address(n)} {n}\\n" for n in ["localhost", *self.names])
        return (f"hostname {name}; ip link set lo up; mount -t proc proc /proc; "
                "mount -t tmpfs tmpfs /dev/shm; "
                f"printf '{table}' > /dev/shm/.hosts; mount --bind /dev/shm/.hosts /etc/hosts")

    def pid(self, name):
        """Returns the pid of the host's first process, for nsenter -t."""
        with open(f"/proc/{self.holders[name].pid}/task/{self.holders[name].pid}/children") as f:
            return int(f.read())

    def set_link(self, name, state):
        """Connects or disconnects the cable between host and switch: "up" or "down"."""
        port = f"p{self.names.index(name)}"
        self._on(self.switch.pid, f"ip link set {port} {state}")

    def limit_link(self, name, rate):
        """Limits the link of one host in both directions: "40mbit". Only without a `rate`."""
        for pid, device in [(self.switch.pid, f"p{self.names.index(name)}"),
                            (self.pid(name), "eth0")]:
            self._on(pid, f"tc qdisc add dev {device} root tbf rate {rate} burst 32kb latency 50ms")

    def start_mpirun(self, ranks_per_host, command, arguments=(), **popen):
        """Starts mpirun at the switch and returns a Popen."""
        environment = dict(os.environ)
        for key, value in {**ENVIRONMENT, **LAUNCHER_ENVIRONMENT}.items():
            environment.setdefault(key, value)
        environment["TRIREME_HOSTS"] = " ".join(f"{n}={self.pid(n)}" for n in self.names)
        ranks = ranks_per_host * len(self.names)
        slots = ",".join(f"{n}:{ranks_per_host}" for n in self.names)
        mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-H", slots, "-n", str(ranks),
                  *arguments, *command]
        enter = ["nsenter", "-t", str(self.switch.pid), "-n", "--"]
        return subprocess.Popen(enter + mpirun, env=environment,
                                preexec_fn=end_with_parent(signal.SIGKILL), **popen)

    def mpirun(self, ranks_per_host, command, arguments=(), timeout=None):
        """Runs mpirun and returns its exit code."""
        process = self.start_mpirun(ranks_per_host, command, arguments)
        try:
            return process.wait(timeout)
        finally:
            end(process)

    def close(self):
        for holder in [*self.holders.values(), *([self.switch] if self.switch else [])]:
            holder.kill()
            holder.wait()
            holder.stdout.close()
        self.holders, self.switch = {}, None

    @staticmethod
    def _hold(namespaces, setup):
        """Starts an idle process in namespaces of its own."""
        fork = ["--fork", "--kill-child"] if "-p" in namespaces else []
        holder = subprocess.Popen(
            ["unshare", *namespaces, *fork, "--", "sh", "-ec",
             f"{setup}; echo ready; exec sleep infinity"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
            preexec_fn=end_with_parent(signal.SIGKILL))
        if holder.stdout.readline() != "ready\n":
            holder.kill()
            raise RuntimeError(f"a host can't be made: exit code {holder.wait()}")
        return holder

    @staticmethod
    def _on(pid, script):
        subprocess.run(["nsenter", "-t", str(pid), "-n", "--", "sh", "-ec", script],
                       check=True)

    def _wire(self, name):
        pid = self.pid(name)
        port = f"p{self.names.index(name)}"
        shape = lambda device: (f"tc qdisc add dev {device} root tbf rate {self.rate} "
                                "burst 256kb latency 20ms" if self.rate else "true")
        self._on(self.switch.pid, f"""
            ip link add {port} mtu {self.mtu} type veth peer name eth0 netns {pid}
            ip link set {port} master br0 up
            {shape(port)}""")
        self._on(pid, f"""
            ip link set eth0 mtu {self.mtu}
            ip addr add {self.address(name)}/24 dev eth0
            ip link set eth0 up
            {shape("eth0")}""")


def end(process):
    """Asks mpirun to end, which ends its ranks, and kills it if it does not."""
    for sig, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 5)):
        if process.poll() is None:
            process.send_signal(sig)
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                pass


def cut_later(hosts, order):
    name, seconds = order.split(":")

    def cut():
        time.sleep(float(seconds))
        hosts.set_link(name, "down")
        print(f"hosts.py: the cable of {name} is cut", file=sys.stderr, flush=True)
    threading.Thread(target=cut, daemon=True).start()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--ranks-per-host", type=int, default=1)
    parser.add_argument("--rate", help="of every link, as tc writes it: 1gbit")
    parser.add_argument("--mtu", type=int, default=1500)
    parser.add_argument("--cut", metavar="HOST:SECONDS")
    parser.add_argument("--mpirun", action="append", default=[], metavar="ARG")
    parser.add_argument("command", nargs="+", metavar="PROGRAM")
    options = parser.parse_args()
    reason = reason_to_skip()
    if reason:
        print(f"skipped '{reason}'")
        return SKIPPED
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    with Hosts(options.hosts, options.rate, options.mtu) as hosts:
        if options.cut:
            cut_later(hosts, options.cut)
        return hosts.mpirun(options.ranks_per_host, options.command, options.mpirun)


if __name__ == "__main__":
    sys.exit(main())
