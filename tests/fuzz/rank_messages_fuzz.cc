// Parses any bytes as messages between ranks at a start or a hang: findings and facts of `doctor`,
// questions and reports of the flight recorder, shard tables, and the greeting before a transfer.
#include <cstring>

#include <nlohmann/json.hpp>

#include "io/checkpoint/manifest.h"
#include "mpi/collective/greeting.h"
#include "mpi/watch/flight_report.h"
#include "slurm/doctor/comparisons.h"
#include "slurm/doctor/finding.h"
#include "src/base/json_fields.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view text = trireme::text_of(data, bytes);
  using trireme::DataError;
  trireme::refuses_only_with<DataError>([&] { (void)trireme::parse_flight_question(text); });
  trireme::refuses_only_with<DataError>([&] { (void)trireme::parse_flight_report(text); });
  trireme::refuses_only_with<DataError>([&] { (void)trireme::parse_shard_table(text, "input"); });
  trireme::refuses_only_with<DataError>([&] {
    const nlohmann::json object = trireme::parse_json(text);
    trireme::refuses_only_with<DataError>(
        [&] { (void)trireme::merged(trireme::findings_from_json(object)); });
    (void)trireme::facts_from_json(object);
  });
  std::array<std::byte, trireme::kGreetingBytes> head{};
  std::memcpy(head.data(), data, std::min(bytes, head.size()));
  if (bytes > 0) {
    (void)trireme::read_greeting(head.data());
  }
  return 0;
}
