"""ReFrame checks of a machine with Trireme: the health of each node, collectives, and a training
step. They need `trireme` in PATH, and a settings file of the site whose launcher starts the ranks
(srun, mpirun); ReFrame's own settings start one process only.

    reframe -C settings.py -c docs/examples/reframe/trireme_checks.py -r --performance-report

The references are examples: enter what the machine reached when it was accepted. Set the variables
on the command line, as in `-S TriremeCollectives.ranks=64 -S TriremeHealth.baseline=FILE`.
"""
import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.builtins import (parameter, performance_function, run_after, run_before,
                                   sanity_function, variable)


class TriremeCheck(rfm.RunOnlyRegressionTest):
    """Common parts of the checks."""

    valid_systems = ["*"]
    valid_prog_environs = ["*"]
    executable = "trireme"
    tags = {"trireme"}
    maintainers = ["hpc-admins"]
    time_limit = "10m"


@rfm.simple_test
class TriremeHealth(TriremeCheck):
    """One node against its own baseline, as HealthCheckProgram does."""

    descr = "trireme health"
    baseline = variable(str, value="")  # a file of `trireme health --save-baseline`
    tags = {"trireme", "node"}

    @run_after("init")
    def set_options(self):
        self.executable_opts = ["health"]
        if self.baseline:
            self.executable_opts += ["--baseline", self.baseline]

    @sanity_function
    def is_fit(self):
        return sn.assert_found(r"^health ok on ", self.stdout)

    @performance_function("GB/s")
    def memory(self):
        return sn.extractsingle(r"memory ([\d.]+) GB/s", self.stdout, 1, float)


@rfm.simple_test
class TriremeCollectives(TriremeCheck):
    """The table of nccl-tests, read with the expressions of ReFrame's own check of nccl-tests."""

    descr = "trireme bench coll"
    operation = parameter(["all_reduce", "all_gather", "reduce_scatter"])
    ranks = variable(int, value=2)
    size = variable(str, value="16M")
    tags = {"trireme", "network"}

    @run_after("init")
    def set_options(self):
        self.num_tasks = self.ranks
        self.executable_opts = ["bench", "coll", "--op", self.operation, "-b", self.size,
                                "-e", self.size, "-J", "coll.json"]
        self.keep_files = ["coll.json"]  # `trireme report` reads it

    @sanity_function
    def has_no_wrong_values(self):
        return sn.assert_found(r"# Out of bounds values : 0 OK", self.stdout)

    @performance_function("GB/s")
    def bus_bandwidth(self):
        return sn.extractsingle(r"# Avg bus bandwidth\s*:\s*(\S+)", self.stdout, 1, float)


@rfm.simple_test
class TriremeStep(TriremeCheck):
    """A training step of a small model."""

    descr = "trireme bench step"
    ranks = variable(int, value=2)
    model = variable(str, value="tiny-gpt2")
    tags = {"trireme", "training"}

    @run_before("run")
    def set_options(self):
        self.num_tasks = self.ranks
        self.executable_opts = ["bench", "step", "--model", self.model, "--rounds", "3",
                                "-J", "step.json"]
        self.keep_files = ["step.json"]

    @sanity_function
    def has_a_result(self):
        return sn.assert_found(r'"name": ?"step"', "step.json")

    @performance_function("tokens/s")
    def throughput(self):
        return sn.extractsingle(r'"tokens_per_s": ?([\d.e+]+)', "step.json", 1, float)
