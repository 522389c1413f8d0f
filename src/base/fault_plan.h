// A plan of faults: which point, on which rank, at which passage, does what.
//
//   TRIREME_FAULTS=site[@generation]:rank:nth:action[,...]        or  TRIREME_FAULTS=@file.yaml
//
//   site        a name of fault_sites.h
//   generation  only in this attempt of `trireme launch` (TRIREME_GENERATION, 1 without it), so
//               that the relaunched run lives; without it in every attempt
//   rank        a number, or * for each
//   nth         N: the N-th passage in a process; N+: it and all later ones; *: every one
//   action      kill stop segv abort throw spin exit=CODE sleep=SECONDS errno=ENOSPC corrupt short
//               nan scale=FACTOR
//
// The file holds the same as a list: `faults: ["ckpt.rename:0:2:kill", ...]`. Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trireme {

struct FaultAction {
  enum class Kind {
    kill,     // SIGKILL to itself
    stop,     // SIGSTOP
    segv,     // SIGSEGV
    abort,    // abort()
    raise,    // "throw": an exception that no caller expects
    spin,     // computes for ever: alive, without progress
    exit,     // leaves without a word, with code `number`
    sleep,    // for `seconds`, then goes on
    error,    // "errno": the call fails with `number`; elsewhere its error is thrown
    corrupt,  // flips a bit of the data
    shorten,  // "short": the call moves half, or one byte of little
    nan,      // one of the numbers becomes NaN
    scale,    // all of them are multiplied by `factor`
  };
  Kind kind = Kind::kill;
  int number = 0;      // exit code or errno
  double seconds = 0;  // of sleep
  double factor = 1;   // of scale
  friend bool operator==(const FaultAction&, const FaultAction&) = default;
};

struct FaultRule {
  std::string site;
  int generation = 0;  // 0: every one
  int rank = -1;       // -1: each
  std::int64_t nth = 1;
  bool and_later = false;
  FaultAction action;
  friend bool operator==(const FaultRule&, const FaultRule&) = default;
};

constexpr std::size_t kMaxFaultRules = 1000;

// The text of TRIREME_FAULTS; `@path` is read. ConfigError names the rule, what is wrong with it
// and what was probably meant. NotFound for a file that is not there.
std::vector<FaultRule> parse_fault_plan(std::string_view text);
// "kill", ..., "sleep=SECONDS", ...: for people.
std::vector<std::string> fault_actions();
// As the plan has it: "kill", "exit=3", "errno=ENOSPC".
std::string to_text(const FaultAction& action);
std::string to_text(const FaultRule& rule);

}  // namespace trireme
