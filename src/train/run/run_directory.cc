#include "src/train/run/run_directory.h"

#include <chrono>
#include <exception>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/lock_mark.h"
#include "src/train/run/done_mark.h"
#include "src/train/run/run_limits.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

void write_done(const fs::path& root, nlohmann::json done) {
  done["time"] = wall_clock_seconds();
  write_file_durably(root / "DONE", done.dump() + "\n");
}

}  // namespace

double wall_clock_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

fs::path RunDirectory::log(int rank) const {
  return root_ / "logs" / fmt::format("rank-{:05}.jsonl", rank);
}

std::optional<FileLock> RunDirectory::take() const {
  make_directories(root_);
  const fs::path path = root_ / ".lock";
  std::optional<FileLock> lock = FileLock::try_take(path);
  if (!lock) {
    throw PolicyError(fmt::format(
        "another run is using {}{}. Wait for it, end its processes, or choose another run.dir",
        root_.string(), lock_holder_text(path)));
  }
  lock->write(own_lock_mark());
  make_directories(root_ / "logs");
  make_directories(tensorboard());
  return lock;
}

void RunDirectory::forget_exit_reason() const {
  std::error_code ignored;
  fs::remove(root_ / "exit_reason.json", ignored);
}

std::optional<std::int64_t> RunDirectory::done_step() const {
  const fs::path path = root_ / "DONE";
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (error) {
      throw_errno(error.value(), "access run.dir", root_);
    }
    return std::nullopt;
  }
  try {
    return count_field(parse_json(read_file(path, 1 << 16)), "step", 0, kMostSteps);
  } catch (const DataError& damage) {
    throw DataError(fmt::format("{} is damaged: {}; remove it to continue the run", path.string(),
                                damage.what()));
  }
}

void RunDirectory::mark_done(std::int64_t step) const { write_done(root_, {{"step", step}}); }

void mark_done_early(const RunDirectory& run, std::int64_t step, const std::string& reason) {
  write_done(run.root(), {{"step", step}, {"early_stop", reason}});
}

void RunDirectory::clear_done() const {
  std::error_code ignored;
  fs::remove(root_ / "DONE", ignored);
}

void RunDirectory::write_exit_reason(const ExitReason& reason) const noexcept {
  try {
    nlohmann::json json = {
        {"code", reason.code}, {"kind", reason.kind},   {"message", reason.message},
        {"rank", reason.rank}, {"host", reason.host},   {"signal", reason.signal},
        {"step", reason.step}, {"phase", reason.phase}, {"time", wall_clock_seconds()}};
    json["device"] = reason.device ? to_json(*reason.device) : nlohmann::json(nullptr);
    const std::string text =
        json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    // O_EXCL makes sure that only the first rank succeeds.
    File file = File::create_new(root_ / "exit_reason.json");
    file.write(text.data(), static_cast<std::int64_t>(text.size()));
    file.close();
  } catch (const std::exception&) {
    // Another rank was first, or the disk is gone. The message was also printed on stderr.
  }
}

}  // namespace trireme
