// Parses any bytes as a rank's trace and summarizes it; either may be refused with a DataError.
#include <cstdint>
#include <string_view>
#include <vector>

#include "src/base/error.h"
#include "src/trace/trace_summary.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  try {
    std::vector<trireme::RankTrace> traces;
    traces.push_back(trireme::parse_trace({reinterpret_cast<const char*>(data), bytes}));
    (void)trireme::summarize(traces);
  } catch (const trireme::DataError&) {
    return 0;
  }
  return 0;
}
