#include "tests/mpi/collective_cases.h"

#include <ostream>

#include "src/base/philox.h"

namespace trireme {

std::vector<CollectiveCase> all_cases() {
  std::vector<CollectiveCase> cases;
  for (const auto& list : {reduction_cases(), movement_cases(), group_cases(), memory_cases(),
                           stream_cases(), fault_cases(), desync_cases()}) {
    cases.insert(cases.end(), list.begin(), list.end());
  }
  return cases;
}

std::ostream& operator<<(std::ostream& out, const CollectiveCase& test) { return out << test.name; }

double sample(int rank, std::int64_t i) {
  const std::uint64_t bits =
      mix64(static_cast<std::uint64_t>(i) * 131 + static_cast<std::uint64_t>(rank));
  const double unit = static_cast<double>(bits >> 40) * 0x1p-24 - 0.5;
  return unit * static_cast<double>(1 << bits % 16);
}

}  // namespace trireme
