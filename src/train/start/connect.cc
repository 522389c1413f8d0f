#include "src/train/start/connect.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "mpi/agreement.h"
#include "src/base/data_error_in.h"
#include "src/base/file.h"
#include "src/train/run/run_config_checks.h"
#include "src/train/start/rank_devices.h"

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
    throw data_error_in(path.string(), error);
  }
  return text;
}

namespace {

bool requires_links(const RunConfig& config) {
  return std::any_of(config.comm_require.begin(), config.comm_require.end(),
                     [](const std::string& word) { return word != "any"; });
}

// The same layout must give the same bits, so NCCL may not choose how to add: its rings add in a
// fixed order, the switches of NVLink do not (NVIDIA/nccl#1497).
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
  const auto warn = [&log](const std::string& text) { log.warning(text); };
  const std::vector<RankDevice> devices =
      agree_on_devices(config, session.places(), session.world(), warn, warn);
  const auto me = static_cast<std::size_t>(session.world().rank());
  World world{.device = devices[me].device(), .devices = devices};
  check_precision(config, world.device);
  const bool on_devices = world.device.kind == DeviceKind::cuda;
  if (!on_devices && requires_links(config)) {
    throw ConfigError(
        "comm.require concerns links between GPUs, but this run computes on CPUs: remove it, or "
        "set train.device to cuda");
  }
  std::unique_ptr<Communicator> on_host =
      session.make_world(parse_backend(config.comm_backend), tuning, warn);
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
