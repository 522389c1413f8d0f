// The fault points of the program: what tests and drills can name in a plan (fault_plan.h). A point
// stands in this table and in the source under one name; tests/base/fault_test.cc compares the two.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct FaultSite {
  // What passes the point decides what can go wrong there besides the end of the process.
  enum class Kind {
    point,    // nothing: errno is thrown as that error
    data,     // bytes, which can be corrupted; errno is thrown
    numbers,  // f32 values, which can become NaN or larger, too
    call,     // a system call, which can fail or move fewer bytes
  };
  std::string_view name;  // "<part>.<point>"
  Kind kind;
  std::string_view where;  // for people
};

// In the order in which a run passes them.
std::span<const FaultSite> fault_sites();
// Null if there is none of this name.
const FaultSite* find_fault_site(std::string_view name);
// "point", "data", "numbers", "call".
std::string_view name_of(FaultSite::Kind kind);

}  // namespace trireme
