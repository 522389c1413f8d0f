#include "slurm/launch/launcher_process.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace trireme {
namespace {

// Removes the session folder that a killed mpirun leaves behind.
void remove_session(pid_t launcher) {
  const char* base = std::getenv("OMPI_MCA_orte_tmpdir_base");
  const char* temporary = std::getenv("TMPDIR");
  const std::filesystem::path top = base != nullptr        ? base
                                    : temporary != nullptr ? temporary
                                                           : "/tmp";
  // The folder's name is ompi.<node, as mpirun calls it>.<user>/pid.<pid of mpirun>.
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(top, gone)) {
    const std::string name = entry.path().filename();
    struct stat status {};
    const bool is_ours = ::lstat(entry.path().c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
                         status.st_uid == ::getuid();
    if (is_ours && name.starts_with("ompi.") && name.ends_with(fmt::format(".{}", ::getuid()))) {
      std::filesystem::remove_all(entry.path() / fmt::format("pid.{}", launcher), gone);
    }
  }
}

}  // namespace

void LauncherProcess::start(const Command& command) {
  child_.emplace(ChildPlan{.argv = command.argv,
                           .environment = command.environment,
                           .input = {},
                           .own_group = true,
                           .dies_with_us = true});
}

std::optional<LauncherProcess::End> LauncherProcess::ended() {
  if (std::exchange(left_, false)) {
    return End{};
  }
  if (!child_ || !child_->poll()) {
    return std::nullopt;
  }
  const int code = *child_->poll();
  if (code > 128) {
    remove_session(child_->pid());
  }
  child_.reset();
  return End{code};
}

void LauncherProcess::signal(int number) const {
  if (child_) {
    child_->signal(number);
  }
}

void LauncherProcess::kill() const {
  if (child_) {
    child_->signal_group(SIGKILL);
  }
}

void LauncherProcess::leave() {
  if (child_) {
    child_->leave();
    child_.reset();
    left_ = true;
  }
}

}  // namespace trireme
