#include "src/train/start/connect.h"

#include "mpi/agreement.h"
#include "src/base/file.h"

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

World connect(const RunConfig& config, MpiSession& session, Log& log) {
  // Only rank 0 reads the table; other ranks need not see the file.
  const auto read = [&] { return read_tuning(config.comm_tuning); };
  const Tuning tuning =
      config.comm_tuning.empty() ? Tuning() : parse_tuning(run_on_root(session.world(), read));
  World world;
  world.data = session.make_world(parse_backend(config.comm_backend), tuning,
                                  [&log](const std::string& text) { log.warning(text); });
  world.control = world.data->split(0, world.data->rank(), "control");
  return world;
}

}  // namespace trireme
