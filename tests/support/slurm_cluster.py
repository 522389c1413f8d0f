#!/usr/bin/python3
"""A real Slurm on one machine: munged, slurmctld and one slurmd per node, in a folder of their own,
on free ports of the loopback interface. Nothing of the system's own Slurm is read or written.

    slurm_cluster.py start DIR [--nodes 4] [--lifetime 3600]
    slurm_cluster.py run DIR -- srun -N4 hostname
    slurm_cluster.py stop DIR

As a module:

    with SlurmCluster(nodes=4) as cluster:
        job = cluster.sbatch("job.sh")
        cluster.kill_node("n2")
        cluster.wait_job(job)

Since the nodes share one host, MPI has to use TCP between them (see TCP below). With `hosts`, each
node has a network of its own, that of a host of hosts.py, whose links can be slow or cut; Slurm's
commands then run at the switch, as with SlurmCluster.command(). All processes of
the cluster descend from one keeper, which adopts those that daemons leave behind (slurmstepd). The
keeper ends them and itself on request, when the process that started it is gone, and when its
lifetime is over. Needs root and the packages slurm-wlm and munge; reason_to_skip() says what is
missing.
"""
import argparse
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

from slurm_keeper import (PATH, alive, descendants, environment_of, holds_open, runs_on, send,
                          until)

HERE = pathlib.Path(__file__).resolve().parent
SKIPPED = 77
TOOLS = ("slurmctld", "slurmd", "munged", "srun", "sbatch", "scontrol", "squeue", "mpirun")
# MPI must use TCP between the nodes; with shared memory, it would notice that they are one host.
TCP = {
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_oob_tcp_if_include": "lo",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMP_NUM_THREADS": "1",
}
TCP_OF_HOSTS = {**TCP, "OMPI_MCA_btl_tcp_if_include": "eth0", "UCX_TLS": "tcp,self",
                "OMPI_MCA_oob_tcp_if_include": "eth0", "UCX_NET_DEVICES": "eth0"}
LOST_SCRIPT = "slurm_script: No such file or directory"
ENDED = {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "PREEMPTED", "OUT_OF_MEMORY",
         "DEADLINE", "BOOT_FAIL"}
# requeue_seconds: how long a requeued job waits before it may start again; Slurm's own is 120 s.
CONFIG = """\
ClusterName=test
AuthType=auth/munge
AuthInfo=socket={d}/run/munge.sock,cred_expire={requeue_seconds}
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
SlurmctldHost=localhost({controller})
SlurmctldPort={controller_port}
{only_loopback}
StateSaveLocation={d}/state
SlurmdSpoolDir={d}/spool-%n
SlurmctldPidFile={d}/run/slurmctld.pid
SlurmdPidFile={d}/run/slurmd-%n.pid
SlurmctldLogFile={d}/slurmctld.log
SlurmdLogFile={d}/slurmd-%n.log
# Each node needs its own: PMIx servers of two nodes would take the same folder.
TmpFS={d}/tmp-%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SlurmctldParameters=preempt_send_user_signal
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
MessageTimeout=10
MinJobAge=3600
JobRequeue=1
ReturnToService=2
KillWait=5
SlurmdTimeout={slurmd_timeout}
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=60 State=UP OverSubscribe=NO PriorityTier=1 \
GraceTime=30
PartitionName=urgent Nodes=ALL MaxTime=60 State=UP OverSubscribe=NO PriorityTier=10 PreemptMode=OFF
"""


def reason_to_skip():
    if os.geteuid() != 0:
        return "Slurm's daemons need root: run as root"
    for tool in TOOLS:
        if shutil.which(tool, path=PATH) is None:
            return f"'{tool}' is missing: install slurm-wlm and munge (./dev install-deps)"
    return None


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def launches_of(pid):
    """Returns the id of the `trireme launch` that a rank belongs to, in a list."""
    mark = b"TRIREME_LAUNCH_ID="
    return [e[len(mark):].decode() for e in environment_of(pid) if e.startswith(mark)]


class SlurmCluster:
    """A cluster. With `folder` alone, it refers to one that another process has started."""

    def __init__(self, folder=None, nodes=4, cpus=2, requeue_seconds=10, slurmd_timeout=10,
                 lifetime=3600, gpus=0, extra_config="", hosts=None):
        self.own_folder = folder is None
        self.folder = pathlib.Path(folder or tempfile.mkdtemp(prefix="slurm-")).resolve()
        self.names = [f"n{i + 1}" for i in range(nodes)]
        self.cpus = cpus
        self.settings = {"requeue_seconds": requeue_seconds, "slurmd_timeout": slurmd_timeout}
        self.lifetime = lifetime
        self.gpus = gpus  # per node, of the type "sim"; their device files lead to /dev/null
        self.extra_config = extra_config
        self.hosts = hosts  # as many hosts of hosts.py as nodes, or None
        self.keeper = None

    # Start and stop

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, detached=False):
        """detached: whether the cluster may outlive this process, for its lifetime at most."""
        self._write_config()
        arguments = [sys.executable, HERE / "slurm_keeper.py", self.folder, str(self.lifetime),
                     "0" if detached else str(os.getpid()),
                     "remove" if self.own_folder else "keep"]
        with open(self.folder / "keeper.log", "ab") as log:
            self.keeper = subprocess.Popen(arguments + self.names, stdin=subprocess.DEVNULL,
                                           stdout=log, stderr=log, start_new_session=True)
        try:
            until("all nodes idle", 60, self._is_up, step=0.2)
        except BaseException:
            self.stop()
            raise

    def stop(self):
        """Cancels the jobs, so that they can clean up, and then ends all processes."""
        pid = self._keeper_pid()
        if pid is not None and alive(pid):
            try:
                self.command("scancel", "--full", "--user", "root", timeout=10, check=False)
                until("the jobs' end", 12, lambda: not self.queue(), step=0.2)
            except (TimeoutError, subprocess.SubprocessError):
                pass
            send(pid, signal.SIGTERM)
            try:
                until("the keeper's end", 20, lambda: not alive(pid))
            except TimeoutError:
                for each in [pid, *descendants(pid)]:
                    send(each, signal.SIGKILL)
        if self.keeper is not None:
            self.keeper.wait()
        if self.own_folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _keeper_pid(self):
        if self.keeper is not None:
            return self.keeper.pid
        try:
            return int((self.folder / "keeper.pid").read_text())
        except (OSError, ValueError):
            return None

    def _write_gpus(self, name):
        """Adds the GPUs of a node to gres.conf, and returns what its line in slurm.conf needs."""
        if self.gpus == 0:
            return ""
        for i in range(self.gpus):
            (self.folder / f"{name}-gpu{i}").symlink_to("/dev/null")
        with open(self.folder / "gres.conf", "a", encoding="utf-8") as lines:
            lines.write(f"NodeName={name} Name=gpu Type=sim File={self.folder}/{name}-gpu"
                        f"[0-{self.gpus - 1}]\n")
        return f" Gres=gpu:sim:{self.gpus}"

    def _write_config(self):
        d = self.folder
        for name in ["run", "state", *[f"{kind}-{n}" for kind in ("spool", "tmp")
                                       for n in self.names]]:
            (d / name).mkdir(parents=True, exist_ok=True)
        controller, *ports = free_ports(1 + len(self.names))
        addresses = ["127.0.0.1"] * (1 + len(self.names))
        only_loopback = "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny"
        if self.hosts is not None:
            addresses, only_loopback = self._enter_networks(), ""
        nodes = "\n".join(
            f"NodeName={name} NodeHostname=localhost NodeAddr={address} Port={port} "
            f"CPUs={self.cpus} RealMemory=4000{self._write_gpus(name)}"
            for name, address, port in zip(self.names, addresses[1:], ports))
        text = CONFIG.format(d=d, controller=addresses[0], controller_port=controller, nodes=nodes,
                             only_loopback=only_loopback, **self.settings)
        gpus = "GresTypes=gpu\n" if self.gpus > 0 else ""
        (d / "slurm.conf").write_text(gpus + text + self.extra_config)
        (d / "cgroup.conf").write_text("CgroupAutomount=no\n")
        key = d / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o600)

    def _enter_networks(self):
        """Tells the keeper the network of each daemon, and returns the daemons' addresses."""
        pids = [self.hosts.switch.pid, *[self.hosts.pid(name) for name in self.hosts.names]]
        for name, pid in zip(["controller", *self.names], pids):
            (self.folder / "run" / f"network-{name}").write_text(str(pid))
        return [self.hosts.SWITCH, *[self.hosts.address(name) for name in self.hosts.names]]

    def _is_up(self):
        if self.keeper is not None and self.keeper.poll() is not None:
            raise RuntimeError((self.folder / "keeper.log").read_text()[-2000:])
        try:
            states = [self.node_state(name) for name in self.names]
        except (subprocess.SubprocessError, KeyError):
            return False
        return all(state == "IDLE" for state in states)

    # Commands

    @property
    def environment(self):
        """Returns the environment for Slurm's commands, without variables of an enclosing job."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PMI"))}
        return {**kept, **(TCP if self.hosts is None else TCP_OF_HOSTS),
                "SLURM_CONF": str(self.folder / "slurm.conf"),
                "PATH": f"{PATH}:{os.environ.get('PATH', '')}"}

    def command(self, *argv, timeout=60, check=True, **options):
        """Runs a command to its end; the result has returncode, stdout and stderr."""
        options.setdefault("env", self.environment)
        enter = []
        if self.hosts is not None:
            enter = ["nsenter", "-t", self.hosts.switch.pid, "-n", "--"]
        return subprocess.run([str(a) for a in [*enter, *argv]], timeout=timeout, check=check,
                              text=True, stdin=subprocess.DEVNULL, capture_output=True, **options)

    def sbatch(self, *arguments, **options):
        """Submits a job and returns its id."""
        result = self.command("sbatch", "--parsable", *arguments, check=False, **options)
        if result.returncode != 0:
            raise RuntimeError(f"sbatch: {result.stderr}")
        return int(result.stdout.strip().split(";")[0])

    def cancel(self, job):
        self.command("scancel", job)

    def queue(self):
        """Returns the ids of the jobs that are not over."""
        out = self.command("squeue", "--noheader", "--array", "--format=%A", timeout=10).stdout
        return [int(line) for line in out.split()]

    def show(self, kind, name):
        """Returns `scontrol show job 7` as {"JobState": "RUNNING", ...}."""
        out = self.command("scontrol", "--oneliner", "show", kind, name, timeout=15).stdout
        return dict(re.findall(r"(\S+?)=(\S*)", out))

    def node_state(self, name):
        """Returns IDLE, ALLOCATED, MIXED+NOT_RESPONDING, DOWN+NOT_RESPONDING or the like."""
        return self.show("node", name)["State"]

    def job_state(self, job):
        return self.show("job", job)["JobState"]

    def wait_state(self, job, *states, seconds=90):
        """Waits until the job is in one of the states, and returns that state. A controller that
        looks for a node which has died may be too busy to answer."""
        def reached():
            try:
                state = self.job_state(job)
            except subprocess.TimeoutExpired:
                return None
            return state if state in states else None
        return until(f"job {job} {'/'.join(states)}", seconds, reached, step=0.1)

    def wait_node(self, name, *states, seconds=60):
        def reached():
            state = self.node_state(name)
            return state if state.split("+")[0].rstrip("*") in states else None
        return until(f"node {name} {'/'.join(states)}", seconds, reached, step=0.2)

    def wait_job(self, job, seconds=300):
        """Waits for the end of the job, and returns (state, exit code, signal). A job whose script
        Slurm has lost is queued again."""
        state = self.wait_state(job, *ENDED, seconds=seconds)
        if state == "FAILED" and self.script_was_lost(job):
            print(f"slurmd lost the script of job {job}; the job is queued again", file=sys.stderr)
            self.command("scontrol", "requeue", job)
            state = self.wait_state(job, *ENDED, seconds=seconds)
        code, number = self.show("job", job)["ExitCode"].split(":")
        return state, int(code), int(number)

    def script_was_lost(self, job):
        """Whether the job never ran because its script had been removed from the node's spool
        folder, which Slurm 22.05 rarely does on a busy host."""
        output = pathlib.Path(self.show("job", job).get("StdOut", ""))
        return output.is_file() and LOST_SCRIPT in output.read_text(errors="replace")

    def controller_log(self, most=8000):
        return (self.folder / "slurmctld.log").read_text(errors="replace")[-most:]

    # Faults

    def processes_of(self, name):
        """Returns the node's slurmd, its step daemons, and all that they have started there,
        parents before their children."""
        log = str(self.folder / f"slurmd-{name}.log")
        mark = f"SLURMD_NODENAME={name}".encode()
        below = descendants(self._keeper_pid())
        roots = [p for p in below if holds_open(p, log) or mark in environment_of(p)]
        found = set(roots)
        for root in roots:
            found.update(descendants(root))
        return [p for p in below if p in found and runs_on(p, name)]

    def kill_node(self, name):
        """Kills a node like a power cut, except that the kernel still closes its TCP connections.
        All processes are stopped before any is killed, so that none can react. Children are killed
        before their parents, because the kernel continues stopped processes whose parent dies
        (SIGHUP, SIGCONT). The node folders of launches are removed with the node."""
        launches = set()
        while True:
            victims = self.processes_of(name)
            if not victims:
                break
            launches |= {launch for pid in victims for launch in launches_of(pid)}
            for pid in victims:
                send(pid, signal.SIGSTOP)
            for pid in reversed(victims):
                send(pid, signal.SIGKILL)
            until(f"{name} dead", 10, lambda: not any(alive(pid) for pid in victims))
        for launch in launches:
            for kept in pathlib.Path("/dev/shm").glob(f"trireme-*-{launch}-{name}"):
                shutil.rmtree(kept, ignore_errors=True)

    def restart_node(self, name):
        """Makes the keeper start the node's daemon again."""
        (self.folder / "run" / f"restart-{name}").touch()
        up = ("IDLE", "ALLOC", "MIX")
        until(f"{name} back", 60, lambda: self.node_state(name).startswith(up), step=0.2)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["start", "stop", "run"])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--lifetime", type=float, default=3600, help="seconds, at most")
    parser.add_argument("words", nargs="*", metavar="COMMAND")
    options = parser.parse_args()
    reason = reason_to_skip()
    if reason:
        print(f"skipped '{reason}'")
        return SKIPPED
    cluster = SlurmCluster(options.folder, nodes=options.nodes, lifetime=options.lifetime)
    if options.action == "start":
        cluster.start(detached=True)
        print(f"export SLURM_CONF={cluster.folder}/slurm.conf")
    elif options.action == "stop":
        cluster.stop()
    else:
        return subprocess.call(options.words, env=cluster.environment)
    return 0


if __name__ == "__main__":
    sys.exit(main())
