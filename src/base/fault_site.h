// FaultSite describes a fault point, which tests and drills can name in a plan (fault_plan.h). Each
// part of the program lists its own points; src/app joins the lists (src/app/run/fault_sites.h).
#pragma once

#include <span>
#include <string_view>

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

// Returns null if the list has no point of this name.
const FaultSite* find_fault_site(std::span<const FaultSite> sites, std::string_view name);
// Returns "point", "data", "numbers" or "call".
std::string_view name_of(FaultSite::Kind kind);

}  // namespace trireme
