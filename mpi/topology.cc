#include "mpi/topology.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <mutex>

#include <fmt/ranges.h>
#include <hwloc.h>
#include <sched.h>

#include "src/base/error.h"

namespace trireme {
namespace {

struct TopologyDeleter {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
struct BitmapDeleter {
  void operator()(hwloc_bitmap_s* set) const { hwloc_bitmap_free(set); }
};
using TopologyPtr = std::unique_ptr<hwloc_topology, TopologyDeleter>;
using Bitmap = std::unique_ptr<hwloc_bitmap_s, BitmapDeleter>;

// Returns null if hwloc can't read the machine.
TopologyPtr load_topology(bool devices) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) {
    return nullptr;
  }
  TopologyPtr owner(topology);
  if (devices) {
    (void)hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  }
  // hwloc would look for the GPUs of X servers, by connecting to ports 6000 to 6009 of this host.
  (void)hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "gl");
  // libudev, by which hwloc looks for devices, is not safe for threads.
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  return hwloc_topology_load(topology) == 0 ? std::move(owner) : nullptr;
}

std::string list_of(hwloc_const_bitmap_t set) {
  char* list = nullptr;
  if (hwloc_bitmap_list_asprintf(&list, set) < 0) {
    return {};
  }
  std::string text = list;
  std::free(list);
  return text;
}

// Returns the operating system's numbers of all objects of this type.
std::string numbers_of(hwloc_topology_t topology, hwloc_obj_type_t type) {
  const Bitmap numbers(hwloc_bitmap_alloc());
  hwloc_obj_t object = nullptr;
  while ((object = hwloc_get_next_obj_by_type(topology, type, object)) != nullptr) {
    hwloc_bitmap_set(numbers.get(), object->os_index);
  }
  return list_of(numbers.get());
}

// Handles machines that hwloc can't read, by counting every hardware thread as a core.
CoreBinding binding_without_topology() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (::sched_getaffinity(0, sizeof(set), &set) != 0) {
    return {};
  }
  CoreBinding binding;
  binding.cores = CPU_COUNT(&set);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) {
      binding.cpus += fmt::format("{}{}", binding.cpus.empty() ? "" : ",", cpu);
    }
  }
  return binding;
}

std::string describe_device(hwloc_topology_t topology, hwloc_obj_t device) {
  const bool fabric = device->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
  std::string text = fmt::format("{} ({}", device->name, fabric ? "OpenFabrics" : "Ethernet");
  const hwloc_obj_t near = hwloc_get_non_io_ancestor_obj(topology, device);
  if (near != nullptr && hwloc_bitmap_weight(near->nodeset) == 1 &&
      hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_NUMANODE) > 1) {
    text += ", NUMA " + list_of(near->nodeset);
  }
  return text + ")";
}

}  // namespace

CoreBinding current_binding() {
  const TopologyPtr topology = load_topology(false);
  const Bitmap set(hwloc_bitmap_alloc());
  if (topology == nullptr || set == nullptr ||
      hwloc_get_cpubind(topology.get(), set.get(), HWLOC_CPUBIND_THREAD) != 0 ||
      hwloc_topology_restrict(topology.get(), set.get(), HWLOC_RESTRICT_FLAG_REMOVE_CPULESS) != 0) {
    return binding_without_topology();
  }
  const int cores = hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_CORE);
  if (cores < 1) {
    return binding_without_topology();
  }
  return {cores, list_of(set.get()), numbers_of(topology.get(), HWLOC_OBJ_PACKAGE),
          numbers_of(topology.get(), HWLOC_OBJ_NUMANODE)};
}

HostShape host_shape() {
  HostShape shape;
  const TopologyPtr topology = load_topology(true);
  if (topology == nullptr) {
    return shape;
  }
  const auto count = [&](hwloc_obj_type_t type) {
    return std::max(hwloc_get_nbobjs_by_type(topology.get(), type), 1);
  };
  shape.packages = count(HWLOC_OBJ_PACKAGE);
  shape.numa_nodes = count(HWLOC_OBJ_NUMANODE);
  shape.cores = count(HWLOC_OBJ_CORE);
  hwloc_obj_t device = nullptr;
  while ((device = hwloc_get_next_osdev(topology.get(), device)) != nullptr) {
    const auto type = device->attr->osdev.type;
    if (type == HWLOC_OBJ_OSDEV_NETWORK || type == HWLOC_OBJ_OSDEV_OPENFABRICS) {
      shape.network_devices.push_back(describe_device(topology.get(), device));
    }
  }
  return shape;
}

std::string HostShape::text() const {
  const auto counted = [](int n, std::string_view what) {
    return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
  };
  return fmt::format("{}, {}, {}; {}", counted(packages, "socket"),
                     counted(numa_nodes, "NUMA node"), counted(cores, "core"),
                     network_devices.empty() ? "no network device on the PCI bus"
                                             : fmt::format("{}", fmt::join(network_devices, ", ")));
}

std::optional<int> numa_node_of(const std::string& bus) {
  const TopologyPtr topology = load_topology(true);
  if (topology == nullptr || hwloc_get_nbobjs_by_type(topology.get(), HWLOC_OBJ_NUMANODE) < 2) {
    return std::nullopt;
  }
  const hwloc_obj_t device = hwloc_get_pcidev_by_busidstring(topology.get(), bus.c_str());
  const hwloc_obj_t near =
      device == nullptr ? nullptr : hwloc_get_non_io_ancestor_obj(topology.get(), device);
  return near != nullptr && hwloc_bitmap_weight(near->nodeset) == 1
             ? std::optional(hwloc_bitmap_first(near->nodeset))
             : std::nullopt;
}

std::vector<int> numbers_in(const std::string& list) {
  const Bitmap set(hwloc_bitmap_alloc());
  std::vector<int> numbers;
  if (set == nullptr || hwloc_bitmap_list_sscanf(set.get(), list.c_str()) != 0) {
    return numbers;
  }
  for (int n = hwloc_bitmap_first(set.get()); n >= 0; n = hwloc_bitmap_next(set.get(), n)) {
    numbers.push_back(n);
  }
  return numbers;
}

void complete_places(std::vector<RankPlace>& places) {
  for (RankPlace& place : places) {
    place.local_rank = place.local_size = place.sharers = 0;
    for (const RankPlace& other : places) {
      if (other.host == place.host) {
        place.local_size += 1;
        place.local_rank += other.rank < place.rank ? 1 : 0;
        place.sharers += other.binding.cpus == place.binding.cpus ? 1 : 0;
      }
    }
  }
}

}  // namespace trireme
