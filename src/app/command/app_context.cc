#include "src/app/command/app_context.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "src/app/command/last_act.h"
#include "src/app/command/launcher_rank.h"
#include "src/base/fault.h"
#include "src/base/floating_point.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/shortened.h"
#include "src/compute/compute_threads.h"
#include "src/device/cuda_device.h"
#include "src/device/nvml/xid.h"

namespace trireme {
namespace {

// Delay before other ranks than 0 report an error. Most errors occur on all ranks alike, for
// example in a file that all read; rank 0 then reports it, and its abort ends the others before
// they repeat it. On GPUs, a rank that has lost its peers waits as well, so that the rank whose GPU
// has failed reports first.
constexpr std::chrono::milliseconds kRankZeroSpeaksFirst{1000};

void arm_planned_faults(std::span<const FaultSite> sites) {
  const char* const plan = std::getenv("TRIREME_FAULTS");
  if (plan != nullptr) {
    const char* const attempt = std::getenv("TRIREME_GENERATION");
    arm_faults(parse_fault_plan(plan, sites), rank_before_start(),
               attempt == nullptr ? 1 : static_cast<int>(std::strtol(attempt, nullptr, 10)));
  }
}

struct Failure {
  ExitCode code;
  std::string_view kind;
  std::string what;
};

// Returns the device of a rank, or null if it is no GPU or not known yet.
const RankDevice* device_of(const AppContext& context, int rank) {
  const auto at = static_cast<std::size_t>(rank);
  return at < context.devices.size() && context.devices[at].is_gpu ? &context.devices[at] : nullptr;
}

// Asks the driver about this rank's GPU. Returns whether the GPU is at fault: because the error is
// one of its own, or because the driver reports a fault that explains the loss of peers.
bool explain_by_gpu(AppContext& context, int rank, Failure& failure) {
  constexpr unsigned kWaitMs = 200;  // the driver reports an error a little after the call
  const RankDevice* const own = device_of(context, rank);
  const bool is_device = failure.code == ExitCode::device && failure.kind == "device";
  if (own == nullptr || !(is_device || failure.code == ExitCode::hang)) {
    return false;
  }
  std::vector<std::string> troubles;
  if (context.gpu != nullptr) {
    for (const int xid : context.gpu->new_xids(kWaitMs)) {
      if (is_device || is_hardware_xid(xid)) {
        troubles.push_back(xid_text(xid));
      }
    }
    for (const GpuState& gpu : context.gpu->gpus()) {
      if (gpu.bus == own->bus && !gpu.failure.empty()) {
        troubles.push_back(gpu.failure);
      }
    }
  }
  if (!troubles.empty()) {
    failure.code = ExitCode::device;
    failure.kind = "device";
    failure.what +=
        fmt::format("; the driver reports for {}: {}", own->text(), fmt::join(troubles, ", "));
  }
  return is_device || !troubles.empty();
}

// Names the device of the blamed rank in the message about a device fault.
void name_device(const AppContext& context, const RankPlace& blamed, Failure& failure) {
  const RankDevice* const device = device_of(context, blamed.rank);
  if (failure.code == ExitCode::device && device != nullptr &&
      failure.what.find(device->uuid) == std::string::npos) {
    failure.what +=
        fmt::format("; rank {} computes on {} of {}", blamed.rank, device->text(), blamed.host);
  }
}

}  // namespace

const Access& AppContext::access() {
  if (!access_) {
    access_ = Access::of_this_host();
    access_->record_in([this](std::string_view event, const nlohmann::ordered_json& details) {
      record_decision(event, details);
    });
  }
  return *access_;
}

// A refusal is recorded even if the command is not.
void AppContext::record_decision(std::string_view event, const nlohmann::ordered_json& details) {
  if (event == kRefusedEvent) {
    try {
      audit.begin_for_refusal(arguments, environ);
    } catch (const Error& error) {
      say(fmt::format("warning: the refusal is missing from the audit log: {}", error.what()));
    }
  }
  audit.note(event, details);
}

MpiSession& AppContext::session() {
  if (session_ == nullptr) {
    try {
      (void)access();  // may start Slurm's commands, which is too late once MPI runs
    } catch (const Error&) {
      // Commands that touch no data work without a policy; the others read it again and report it.
    }
    arm_planned_faults(fault_sites);
    fault("start.init");
    session_ = std::make_unique<MpiSession>();
    restore_floating_point();  // the libraries that MPI loads may have changed it
    fault("start.joined");
  }
  return *session_;
}

int compute_threads(int wanted) {
  const ComputeThreads found = measure_compute_threads(wanted);
  for (const std::string& warning : found.warnings) {
    std::fputs(fmt::format("trireme: warning: {}\n", printable(warning)).c_str(), stderr);
  }
  return found.threads;
}

void note_devices(AppContext& context, std::vector<RankDevice> devices) {
  context.devices = std::move(devices);
  const RankDevice* const own = device_of(context, context.session().place().rank);
  if (own != nullptr) {
    context.gpu = GpuMonitor::open(cuda::management_library());
    if (context.gpu != nullptr) {
      (void)context.gpu->watch(own->uuid);
    }
  }
}

void end_with(AppContext& context, ExitCode code, std::string_view kind, const std::string& what,
              std::optional<int> at_fault) {
  if (context.progress != nullptr) {
    context.progress->note_error(static_cast<int>(code));
  }
  const bool several = context.has_session() && context.session().world().size() > 1;
  const RankPlace place = context.has_session() ? context.session().place() : RankPlace{};
  const RankPlace blamed =
      at_fault ? context.session().places().at(static_cast<std::size_t>(*at_fault)) : place;
  Failure failure{code, kind, shortened(what)};
  const bool own_gpu = !at_fault && explain_by_gpu(context, place.rank, failure);
  name_device(context, blamed, failure);
  if (context.progress != nullptr) {
    context.progress->note_error(static_cast<int>(failure.code));
  }
  if (several && !own_gpu) {
    const bool lost_peers = failure.code == ExitCode::hang && !context.devices.empty() &&
                            context.devices.front().is_gpu;
    std::this_thread::sleep_for(((place.rank != 0 ? 1 : 0) + (lost_peers ? 1 : 0)) *
                                kRankZeroSpeaksFirst);
  }
  const std::string who = several ? fmt::format("rank {} on {}: ", place.rank, place.host) : "";
  std::fputs(fmt::format("trireme: {}{}\n", who, printable_lines(failure.what)).c_str(), stderr);
  if (context.run) {
    const RankDevice* const device = device_of(context, blamed.rank);
    context.run->write_exit_reason({static_cast<int>(failure.code), std::string(failure.kind),
                                    failure.what, blamed.rank, blamed.host, 0, context.status.step,
                                    context.status.phase,
                                    device == nullptr ? std::nullopt : std::optional(*device)});
  }
  context.audit.end(static_cast<int>(failure.code), failure.kind, failure.what);
  do_last_act();
  if (context.has_session()) {
    context.session().abort(failure.code);
  }
  std::fflush(nullptr);
  std::_Exit(static_cast<int>(failure.code));
}

}  // namespace trireme
