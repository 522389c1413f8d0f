// Parses any bytes as a history, and finds the levels of its series.
#include "src/study/history.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  trireme::refuses_only_with<trireme::DataError>([&] {
    const auto history = trireme::parse_history(trireme::text_of(data, bytes), "input");
    for (const trireme::HistorySeries& series : history.series) {
      const auto levels = trireme::levels_of(series, 0.02);
      trireme::require(levels.front().begin == 0 && levels.back().end == series.entries.size());
    }
  });
  return 0;
}
