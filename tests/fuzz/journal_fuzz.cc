// Parses any bytes as the journal of a launch and reports its events. Bad lines are skipped, and
// nothing is thrown.
#include <nlohmann/json.hpp>

#include "slurm/journal/account.h"
#include "slurm/journal/journal.h"
#include "slurm/journal/report.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  std::int64_t bad_lines = 0;
  const auto events = trireme::parse_journal(trireme::text_of(data, bytes), bad_lines);
  const trireme::Account account = trireme::account_of(events);
  (void)trireme::to_text(account);
  (void)trireme::to_json(account);
  return 0;
}
