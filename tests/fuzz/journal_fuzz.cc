// Parses any bytes as the journal of a launch, reports its events, and replays them in a
// simulation. Bad lines are skipped, and nothing is thrown but by the replay, if the run did
// nothing.
#include <nlohmann/json.hpp>

#include "slurm/journal/account.h"
#include "slurm/journal/journal.h"
#include "slurm/journal/report.h"
#include "src/base/error.h"
#include "src/plan/simulate/run_journal.h"
#include "src/plan/simulate/save_times.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  trireme::DamagedLines damaged;
  const auto events = trireme::parse_journal(trireme::text_of(data, bytes), damaged);
  const trireme::Account account = trireme::account_of(events);
  (void)trireme::to_text(account);
  (void)trireme::to_json(account);
  try {
    trireme::JobModel::Checkpoint settings;
    settings.every = settings.memory_every = {10, ""};
    const trireme::RunJournal journal = trireme::run_journal(account, settings);
    (void)trireme::simulate_job(journal.replay, journal.faults);
  } catch (const trireme::DataError&) {
  }
  try {
    (void)trireme::checkpoint_settings(trireme::text_of(data, bytes), "config.yaml");
  } catch (const trireme::ConfigError&) {
  }
  trireme::SaveTimes times;
  times.add_log(trireme::text_of(data, bytes));
  trireme::JobModel::Checkpoint settings = times.observed_settings();
  (void)trireme::use_save_times(times, settings);
  return 0;
}
