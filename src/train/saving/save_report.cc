#include "src/train/saving/save_report.h"

#include <numeric>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {

void SaveReport::warning(const std::string& text) const {
  if (log_ != nullptr) {
    log_->warning(text);
  }
}

void SaveReport::disk(const SaveOutcome& outcome, double stall_seconds, std::int64_t waits) const {
  if (log_ == nullptr) {
    return;
  }
  if (!outcome.durable) {
    log_->error(fmt::format("step {} could not be saved{}: {}", outcome.step,
                            outcome.step < last_step_ ? ", training continues" : "",
                            outcome.message));
    return;
  }
  log_->event("checkpoint", {{"step", outcome.step},
                             {"bytes", outcome.bytes},
                             {"seconds", outcome.seconds},
                             {"stall_ms", 1e3 * stall_seconds},
                             {"waits", waits}});
  log_->info(fmt::format("saved step {}: {} in {}{}{}", outcome.step, format_bytes(outcome.bytes),
                         format_seconds(outcome.seconds), outcome.message.empty() ? "" : "; ",
                         outcome.message));
}

void SaveReport::memory(const SaveOutcome& outcome, double stall_seconds) const {
  if (log_ == nullptr) {
    return;
  }
  if (!outcome.message.empty()) {
    log_->warning(fmt::format("step {} was {} in memory, training continues: {}", outcome.step,
                              outcome.durable ? "saved" : "not saved", outcome.message));
  }
  if (outcome.durable) {
    log_->event("memory_checkpoint", {{"step", outcome.step},
                                      {"bytes", outcome.bytes},
                                      {"seconds", outcome.seconds},
                                      {"stall_ms", 1e3 * stall_seconds}});
  }
}

void SaveReport::interval(const char* key, const std::string& text, std::int64_t steps,
                          const SaveFigures& figures) const {
  if (log_ == nullptr) {
    return;
  }
  log_->info(fmt::format("{}: {}", key, text));
  log_->event("save_interval", {{"key", key},
                                {"steps", steps},
                                {"cost_seconds", figures.cost},
                                {"least_seconds", figures.least},
                                {"step_seconds", figures.step},
                                {"mtbf_hours", figures.mtbf / 3600}});
}

void SaveReport::resumed(const Resumed& resumed) const {
  if (log_ == nullptr) {
    return;
  }
  for (const std::string& why : resumed.skipped) {
    log_->warning(fmt::format("skipped {}", why));
  }
  for (const std::string& damage : resumed.repairs) {
    log_->warning(fmt::format("used another copy of a damaged file: {}", damage));
  }
  log_->event("resumed", {{"step", resumed.manifest.meta.step},
                          {"generation", resumed.manifest.generation},
                          {"from_memory", resumed.from_memory},
                          {"bytes", resumed.bytes},
                          {"seconds", resumed.load.seconds}});
  log_->info(fmt::format(
      "resumed from {}: {} in {}", resumed.source(),
      format_bytes(std::accumulate(resumed.bytes.begin(), resumed.bytes.end(), std::int64_t{0})),
      format_seconds(resumed.load.seconds)));
}

}  // namespace trireme
