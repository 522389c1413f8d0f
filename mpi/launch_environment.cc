#include "mpi/launch_environment.h"

#include <cstdlib>
#include <memory>

#include <hwloc.h>
#include <sched.h>

#include "src/base/error.h"

namespace trireme {
namespace {

// Whether the variable holds a number above one.
bool is_several(const std::optional<std::string>& value) {
  return value && std::strtol(value->c_str(), nullptr, 10) > 1;
}

struct TopologyDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
struct BitmapDeleter {
  void operator()(hwloc_bitmap_s* set) const { hwloc_bitmap_free(set); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

std::unique_ptr<hwloc_topology, TopologyDeleter> load_topology() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) {
    return nullptr;
  }
  std::unique_ptr<hwloc_topology, TopologyDeleter> owner(topology);
  return hwloc_topology_load(topology) == 0 ? std::move(owner) : nullptr;
}

// Where hwloc can't read the machine: every hardware thread counts as a core.
CoreBinding binding_without_topology() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) {
    return {};
  }
  std::string cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) {
      cpus += fmt::format("{}{}", cpus.empty() ? "" : ",", cpu);
    }
  }
  return {CPU_COUNT(&set), cpus};
}

}  // namespace

EnvironmentLookup process_environment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

Launcher detect_launcher(const EnvironmentLookup& environment) {
  if (environment("PMIX_RANK")) {
    return environment("OMPI_COMM_WORLD_SIZE") ? Launcher::mpirun : Launcher::srun;
  }
  if (environment("SLURM_STEP_ID") && is_several(environment("SLURM_STEP_NUM_TASKS"))) {
    throw ConfigError(fmt::format(
        "srun started {} tasks without PMIx, so each would run alone as rank 0 of 1: start with "
        "'srun --mpi=pmix ...' ('srun --mpi=list' shows whether this Slurm has it), or with "
        "'mpirun ...' inside the allocation",
        *environment("SLURM_STEP_NUM_TASKS")));
  }
  if (is_several(environment("PMI_SIZE"))) {
    throw ConfigError(fmt::format(
        "another MPI's launcher (PMI_SIZE={}) started this program, which is built with Open MPI, "
        "so each process would run alone as rank 0 of 1: start with Open MPI's mpirun ('mpirun "
        "--version' says whose it is), or with 'srun --mpi=pmix'",
        *environment("PMI_SIZE")));
  }
  return Launcher::alone;
}

CoreBinding current_binding() {
  const auto topology = load_topology();
  const Bitmap set(hwloc_bitmap_alloc());
  if (topology == nullptr || set == nullptr ||
      hwloc_get_cpubind(topology.get(), set.get(), HWLOC_CPUBIND_THREAD) != 0 ||
      hwloc_topology_restrict(topology.get(), set.get(), 0) != 0) {
    return binding_without_topology();
  }
  const int cores = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
  char* list = nullptr;
  if (cores < 1 || hwloc_bitmap_list_asprintf(&list, set.get()) < 0) {
    return binding_without_topology();
  }
  CoreBinding binding{cores, list};
  std::free(list);
  return binding;
}

}  // namespace trireme
