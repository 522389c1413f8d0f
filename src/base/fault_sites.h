// Lists the fault points that tests and drills can name in a plan (fault_plan.h). Each point has
// the same name here and in the source, which tests/base/fault_test.cc verifies.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct FaultSite {
  // A Kind says what passes the point, which determines the faults that are possible there besides
  // the end of the process.
  enum class Kind {
    point,    // nothing: errno is thrown as the error of its class
    data,     // bytes, which can be corrupted; errno is thrown
    numbers,  // f32 values, which can also become NaN or be scaled
    call,     // a system call, which can fail or transfer fewer bytes
  };
  std::string_view name;  // "<part>.<point>"
  Kind kind;
  std::string_view where;  // description for people
};

// The points are in the order in which a run passes them.
std::span<const FaultSite> fault_sites();
// Returns null if there is no point of this name.
const FaultSite* find_fault_site(std::string_view name);
// Returns "point", "data", "numbers" or "call".
std::string_view name_of(FaultSite::Kind kind);

}  // namespace trireme
