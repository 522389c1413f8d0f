#include "src/train/start/connect.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "mpi/agreement.h"
#include "mpi/rank_fault.h"
#include "src/base/file.h"
#include "src/compute/device_choice.h"
#include "src/device/cuda_device.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostTuningBytes = 1 << 20;

}  // namespace

std::string read_tuning(const std::filesystem::path& path) {
  if (path.empty()) {
    return "";
  }
  const std::string text = read_file(path, kMostTuningBytes);
  try {
    (void)parse_tuning(text);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", path.string(), error.what()));
  }
  return text;
}

namespace {

// Throws on all ranks alike if some of them have no device. If none has one, the configuration does
// not fit these nodes; otherwise a node is at fault.
void check_all_have_devices(const std::string& fault, Communicator& world) {
  const std::string faults = gather_faults(world, fault);
  if (faults.empty()) {
    return;
  }
  const std::int64_t faulty = fault.empty() ? 0 : 1;
  if (all_reduce_value(world, faulty, ReduceOp::sum) == world.size()) {
    throw ConfigError(faults);
  }
  const std::int64_t rank = fault.empty() ? world.size() : world.rank();
  throw RankFault(faults, static_cast<int>(all_reduce_value(world, rank, ReduceOp::min)));
}

// Returns the device of this rank. Throws on all ranks alike.
Device agree_on_device(const RunConfig& config, const RankPlace& place, Communicator& world) {
  Device device;
  std::string fault;
  std::string mark = "cpu";
  try {
    device = choose_device(config.train.device, place.local_rank, place.local_size);
    if (device.kind == DeviceKind::cuda) {
      mark = fmt::format("{} on {}", cuda::device_facts(device.index).uuid, place.host);
    }
  } catch (const Error& error) {
    fault = error.what();
  }
  check_all_have_devices(fault, world);
  const std::vector<std::string> marks = all_gather_text(world, mark);
  for (std::size_t rank = 0; rank < marks.size(); ++rank) {
    if ((marks[rank] == "cpu") != (marks.front() == "cpu")) {
      throw ConfigError(
          fmt::format("{} computes on {}, but {} on {}: set train.device to cpu or cuda",
                      world.members().describe(0), marks.front(),
                      world.members().describe(static_cast<int>(rank)), marks[rank]));
    }
    const auto first = std::find(marks.begin(), marks.end(), marks[rank]) - marks.begin();
    if (mark != "cpu" && first != static_cast<std::ptrdiff_t>(rank)) {
      throw ConfigError(
          fmt::format("{} and {} have the same CUDA device ({}): start one rank per device",
                      world.members().describe(static_cast<int>(first)),
                      world.members().describe(static_cast<int>(rank)), marks[rank]));
    }
  }
  return device;
}

bool requires_links(const RunConfig& config) {
  return std::any_of(config.comm_require.begin(), config.comm_require.end(),
                     [](const std::string& word) { return word != "any"; });
}

// The same layout promises the same bits, so that NCCL may not choose how to add: its rings add in
// one order, the switches of NVLink do not (NVIDIA/nccl#1497).
void fix_algorithm(const RunConfig& config, Log& log) {
  if (config.reproducibility != "layout") {
    return;
  }
  for (const auto& [name, value] : {std::pair("NCCL_ALGO", "Ring"), {"NCCL_NVLS_ENABLE", "0"}}) {
    const char* const given = std::getenv(name);
    if (given != nullptr && std::string_view(given) != value) {
      log.warning(fmt::format("numerics.reproducibility: layout uses {}={} instead of {}", name,
                              value, given));
    }
    ::setenv(name, value, 1);
  }
}

}  // namespace

World connect(const RunConfig& config, MpiSession& session, Log& log) {
  // Only rank 0 reads the table; other ranks need not see the file.
  const auto read = [&] { return read_tuning(config.comm_tuning); };
  const Tuning tuning =
      config.comm_tuning.empty() ? Tuning() : parse_tuning(run_on_root(session.world(), read));
  World world;
  world.device = agree_on_device(config, session.place(), session.world());
  const bool on_devices = world.device.kind == DeviceKind::cuda;
  if (!on_devices && requires_links(config)) {
    throw ConfigError(
        "comm.require speaks of links between GPUs, but this run computes on CPUs: remove it, or "
        "set train.device to cuda");
  }
  std::unique_ptr<Communicator> on_host =
      session.make_world(parse_backend(config.comm_backend), tuning,
                         [&log](const std::string& text) { log.warning(text); });
  world.control = on_host->split(0, on_host->rank(), "control");
  if (on_devices) {
    fix_algorithm(config, log);
    world.data = session.make_device_world(
        std::move(on_host), {.device = world.device,
                             .watch = {},
                             .deadline = std::chrono::duration<double>(config.deadline.start),
                             .links = world.links.get()});
  } else {
    world.data = std::move(on_host);
  }
  return world;
}

}  // namespace trireme
