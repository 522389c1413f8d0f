// Declares the cases that every transport has to pass. collectives_test.cc runs them on a group of
// one rank and on threads, and ranks/collectives_test.cc under mpirun. Each case is called once per
// rank, on all ranks of a group of any size, and states its expectations with EXPECT.
#pragma once

#include <iosfwd>
#include <vector>

#include "mpi/communicator.h"

namespace trireme {

struct CollectiveCase {
  const char* name;
  void (*run)(Communicator& comm);
};

std::vector<CollectiveCase> reduction_cases();
std::vector<CollectiveCase> movement_cases();
std::vector<CollectiveCase> group_cases();
std::vector<CollectiveCase> memory_cases();
std::vector<CollectiveCase> stream_cases();
std::vector<CollectiveCase> fault_cases();
std::vector<CollectiveCase> desync_cases();
std::vector<CollectiveCase> all_cases();

std::ostream& operator<<(std::ostream& out, const CollectiveCase& test);

// Returns a view of a vector's elements.
template <class T>
View view_of(std::vector<T>& values) {
  return {values.data(), static_cast<std::int64_t>(values.size()), dtype_of<T>()};
}

// Returns number i of rank r. Signs and magnitudes are mixed, so that sums depend on their order.
double sample(int rank, std::int64_t i);

}  // namespace trireme
