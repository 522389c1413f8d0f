// A fault plan says which fault point does what, on which rank and at which passage.
//
//   TRIREME_FAULTS=site[@attempt]:rank:nth:action[,...]        or  TRIREME_FAULTS=@file.yaml
//
//   site        the name of a fault point (fault_site.h)
//   attempt     number of the attempt of `trireme launch` (TRIREME_GENERATION, 1 if unset) with the
//               fault, so that a relaunched run survives; if left out, every attempt has it
//   rank        a number, or * for all ranks
//   nth         N: only the N-th passage in a process; N+: also all later ones; *: every one
//   action      kill stop segv abort throw spin exit=CODE sleep=SECONDS errno=ENOSPC corrupt short
//               nan scale=FACTOR
//
// The file contains the same rules as a list: `faults: ["ckpt.rename:0:2:kill", ...]`. Pure
// functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/fault_site.h"

namespace trireme {

struct FaultAction {
  enum class Kind {
    kill,     // sends SIGKILL to the process
    stop,     // sends SIGSTOP
    segv,     // raises SIGSEGV
    abort,    // calls abort()
    raise,    // "throw": throws an exception that no caller expects
    spin,     // loops endlessly: alive, without progress
    exit,     // exits with code `number` without a message
    sleep,    // sleeps for `seconds`, then continues
    error,    // "errno": a call fails with `number`; other points throw its error
    corrupt,  // flips a bit of the data
    shorten,  // "short": the call transfers half of its bytes, or one byte of few
    nan,      // replaces one of the numbers by NaN
    scale,    // multiplies all numbers by `factor`
  };
  Kind kind = Kind::kill;
  int number = 0;      // exit code or errno
  double seconds = 0;  // for sleep
  double factor = 1;   // for scale
  friend bool operator==(const FaultAction&, const FaultAction&) = default;
};

struct FaultRule {
  std::string site;
  int attempt = 0;  // attempt; 0: all
  int rank = -1;    // -1: all
  std::int64_t nth = 1;
  bool and_later = false;
  FaultAction action;
  friend bool operator==(const FaultRule&, const FaultRule&) = default;
};

inline constexpr std::size_t kMaxFaultRules = 1000;

// Parses the text of TRIREME_FAULTS, which may name the points in `sites`; `@path` reads the file.
// Throws ConfigError that names the rule, what is wrong and what was probably meant, and NotFound
// if the file does not exist.
std::vector<FaultRule> parse_fault_plan(std::string_view text, std::span<const FaultSite> sites);
// Returns "kill", ..., "sleep=SECONDS", ... for people.
std::vector<std::string> fault_actions();
// Returns the text as written in a plan: "kill", "exit=3", "errno=ENOSPC".
std::string to_text(const FaultAction& action);
std::string to_text(const FaultRule& rule);

}  // namespace trireme
