// What `trireme accept` starts on nodes, and whether it can be started: checked before anything is,
// since a wrong profile would make all nodes bad.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "src/app/command/app_context.h"
#include "src/study/accept_profile.h"

namespace trireme {

// Returns the arguments of this program that a measure of the profile stands for. file: for what a
// benchmark writes.
std::vector<std::string> measure_arguments(const std::string& measure, double seconds,
                                           const std::string& file);

// Returns what is wrong with a command line of this program, or "".
using UsageCheck = std::function<std::string(const std::vector<std::string>& arguments)>;
// Checks those of `trireme bench` and `trireme health`, without running them.
std::string measure_problem(AppContext& context, const std::vector<std::string>& arguments);

// Throws a ConfigError if a `start` names no program in PATH, or a measure has wrong
// arguments. file: the profile's name.
void check_measures(const AcceptProfile& profile, const std::string& file, const UsageCheck& check);

}  // namespace trireme
