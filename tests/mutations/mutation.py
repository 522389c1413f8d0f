"""What a mutation is, and the tests and sources that several of them name."""

import dataclasses

KERNELS = "tests/kernels/on_device/kernels_cuda_test"
DEVICE = "tests/device/cuda/device_cuda_test"
NCCL = "tests/mpi/nccl/mpi_nccl_test"
EVIDENCE = "tests/evidence/evidence_test"
POLICY = "tests/policy/policy_test"
LINEAGE = "tests/lineage/lineage_test"
TRAIN = "tests/train/on_device/train_on_device_test"
BITS = "Kernels/EachCase.HasTheSameBitsInEverySchedule"
VALUES = "Kernels/EachCase.AgreesWithTheReference"
GRAPHS = "Layouts/MicroBatchGraphsTest.HaveTheBitsOfStepsWithoutThem"

CUDA = "src/kernels/cuda"
QUEUE = "src/device/cuda/cuda_queue.cc"
COMM = "mpi/nccl/nccl_communicator.cc"
CALLS = "mpi/nccl/nccl_communicator_calls.cc"
CHANNEL = "mpi/nccl/nccl_channel.cc"
MONITOR = "mpi/nccl/nccl_monitor.cc"
TREE = "mpi/nccl/tree_sum.cu"


@dataclasses.dataclass(frozen=True)
class Mutation:
    name: str
    what: str  # for the table
    file: str
    old: str  # occurs `times` times in the file; the first one is replaced
    new: str
    test: str  # a filter of GoogleTest
    program: str = KERNELS
    source: str = ""  # what is compiled; the file itself unless it is a header
    times: int = 1

    def __post_init__(self):
        object.__setattr__(self, "source", self.source or self.file)
