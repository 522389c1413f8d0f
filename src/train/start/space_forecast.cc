#include "src/train/start/space_forecast.h"

#include <algorithm>
#include <numeric>

#include <fcntl.h>
#include <sys/quota.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "io/checkpoint/store.h"
#include "src/base/file.h"
#include "src/base/units.h"
#include "src/nn/model_size.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kQuotaBlockBytes = 1024;  // unit of limits in quotactl(2)

// Returns the folder, or its nearest ancestor that exists.
fs::path existing_folder(const fs::path& folder) {
  std::error_code ignored;
  fs::path path = fs::absolute(folder, ignored);
  while (!fs::is_directory(path, ignored) && path != path.parent_path()) {
    path = path.parent_path();
  }
  return path;
}

// Returns what is left of one quota, or nothing if there is none. File systems that keep quotas
// elsewhere (NFS, Lustre) return an error.
std::optional<std::int64_t> quota_left(const fs::path& folder, int type, unsigned id) {
#ifdef SYS_quotactl_fd
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) {
    return std::nullopt;
  }
  dqblk quota{};
  const bool has_quota = ::syscall(SYS_quotactl_fd, fd, QCMD(Q_GETQUOTA, type), id, &quota) == 0;
  ::close(fd);
  if (!has_quota) {
    return std::nullopt;
  }
  const std::uint64_t limit =
      quota.dqb_bsoftlimit != 0 ? quota.dqb_bsoftlimit : quota.dqb_bhardlimit;
  if (limit == 0) {
    return std::nullopt;
  }
  const std::int64_t bytes = static_cast<std::int64_t>(limit) * kQuotaBlockBytes;
  return std::max<std::int64_t>(bytes - static_cast<std::int64_t>(quota.dqb_curspace), 0);
#else
  return std::nullopt;
#endif
}

std::optional<std::int64_t> least(std::optional<std::int64_t> a, std::optional<std::int64_t> b) {
  return a && b ? std::min(a, b) : a ? a : b;
}

std::int64_t bytes_of_steps(const fs::path& folder) {
  std::int64_t bytes = 0;
  for (const StepFolder& step : list_steps(folder)) {
    bytes += step.manifest && !step.pinned ? step.manifest->bytes() : 0;
  }
  return bytes;
}

}  // namespace

std::int64_t SpaceForecast::needed_bytes() const {
  return std::max<std::int64_t>(checkpoints() * checkpoint_bytes - stored_bytes, 0);
}

std::string SpaceForecast::lack(const std::string& folder) const {
  const std::optional<std::int64_t> room = least(free_bytes, quota_bytes);
  if (!room || *room >= needed_bytes()) {
    return "";
  }
  const std::string milestone_text =
      milestones == 0 ? "" : fmt::format(" and {} that checkpoint.keep_every keeps", milestones);
  const std::string best_text =
      best == 0 ? "" : fmt::format(" and {} that checkpoint.keep_best keeps", best);
  const std::string stored_text = stored_bytes == 0 ? ""
                                                    : fmt::format(", of which {} are already there",
                                                                  format_bytes(stored_bytes));
  return fmt::format(
      "the checkpoints will not fit into {}: one takes {}, and up to {} are kept at a time{}{}: {} "
      "in all{}, but only {} {}. Make room, lower checkpoint.keep{}, raise checkpoint.keep_every, "
      "or choose another checkpoint.dir",
      folder, format_bytes(checkpoint_bytes), newest, milestone_text, best_text,
      format_bytes(checkpoints() * checkpoint_bytes), stored_text, format_bytes(*room),
      quota_bytes == room ? "of the quota are left" : "are free",
      best == 0 ? "" : " or checkpoint.keep_best");
}

namespace {

// Returns how many steps are evaluated, including the last one.
std::int64_t evaluations_of(const RunConfig& config) {
  const std::int64_t every = config.train.eval_every;
  return config.data.validation.empty() ? 0
         : every == 0                   ? 1
                                        : (config.train.steps + every - 1) / every;
}

// Returns how many steps are evaluated, but saved only if they are among the best. `every` is the
// number of steps between saves, 0 if only the last step is saved. The last step is always saved.
std::int64_t only_evaluated(const RunConfig& config, std::int64_t every) {
  const std::int64_t evaluations = evaluations_of(config);
  const std::int64_t before_last = config.train.steps - 1;
  const std::int64_t both = every == 0 || config.train.eval_every == 0
                                ? 0
                                : before_last / std::lcm(every, config.train.eval_every);
  return std::max<std::int64_t>(evaluations - 1 - both, 0);
}

}  // namespace

SpaceForecast forecast_space(const RunConfig& config) {
  const CheckpointConfig& c = config.checkpoint;
  const std::int64_t steps = config.train.steps;
  const std::int64_t every = std::max<std::int64_t>(c.every.integer, c.every.is("auto") ? 1 : 0);
  const std::int64_t saves = every > 0 ? (steps + every - 1) / every : 1;
  SpaceForecast forecast;
  // Muon has one state less for matrices, so that this is an upper limit.
  const std::int64_t numbers = 1 + config.optimizer.options().states();
  forecast.checkpoint_bytes =
      numbers * std::int64_t{sizeof(float)} * trained_parameter_count(config.model);
  forecast.newest = std::min<std::int64_t>(c.keep + 1, saves);
  if (c.keep_every > 0 && every > 0) {
    const std::int64_t between = std::lcm(c.keep_every, every);
    forecast.milestones =
        std::max<std::int64_t>(std::min(steps / between, saves - forecast.newest), 0);
  }
  const std::int64_t others =
      saves + only_evaluated(config, every) - forecast.newest - forecast.milestones;
  forecast.best =
      std::clamp<std::int64_t>(std::min<std::int64_t>(c.keep_best, evaluations_of(config)), 0,
                               std::max<std::int64_t>(others, 0));
  return forecast;
}

SpaceForecast measured_space(const RunConfig& config) {
  SpaceForecast forecast = forecast_space(config);
  try {
    const fs::path folder = existing_folder(config.checkpoint_dir());
    forecast.quota_bytes =
        least(quota_left(folder, USRQUOTA, ::geteuid()), quota_left(folder, GRPQUOTA, ::getegid()));
    forecast.free_bytes = free_bytes(folder);
    forecast.stored_bytes = bytes_of_steps(config.checkpoint_dir());
  } catch (const Error&) {
    // A failed forecast does not end the run; the first save will report the error.
  }
  return forecast;
}

}  // namespace trireme
