#include "src/policy/caller.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include <fmt/ranges.h>
#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "src/base/command.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::size_t kMostEntryBytes = 1 << 20;  // of a group with many members

std::vector<gid_t> kernel_groups() {
  const int count = ::getgroups(0, nullptr);
  std::vector<gid_t> groups(count < 0 ? 0 : static_cast<std::size_t>(count));
  if (count < 0 || ::getgroups(count, groups.data()) != count) {
    throw IoError("the kernel does not tell the groups of this process");
  }
  groups.push_back(::getegid());
  std::sort(groups.begin(), groups.end());
  groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
  return groups;
}

std::string name_of_user(uid_t uid) {
  std::string buffer(kMostEntryBytes, '\0');
  passwd entry{};
  passwd* found = nullptr;
  const bool has_name =
      ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr;
  return has_name ? found->pw_name : std::to_string(uid);
}

std::optional<gid_t> group_number(const std::string& name) {
  std::string buffer(kMostEntryBytes, '\0');
  group entry{};
  group* found = nullptr;
  const int code = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (code != 0) {
    throw PolicyError(fmt::format(
        "the group '{}' of /etc/trireme/policy.yaml could not be looked up (error {}): is the "
        "directory service of this host down?",
        printable(name), code));
  }
  return found == nullptr ? std::nullopt : std::optional(found->gr_gid);
}

CommandResult ask_slurm(const Policy& policy, const std::string& command,
                        const std::vector<std::string>& words) {
  constexpr std::chrono::seconds kLimit(10);
  // SLURM_CONF and the like could lead to another cluster, whose answers a user controls.
  std::vector<std::string> argv = {"/usr/bin/env", "-i", (policy.slurm / command).string()};
  argv.insert(argv.end(), words.begin(), words.end());
  return run_command(argv, kLimit);
}

void find_account(const Policy& policy, Caller& caller) {
  const CommandResult of_pid =
      ask_slurm(policy, "scontrol", {"pidinfo", std::to_string(::getpid())});
  caller.job = of_pid.good() ? parse_job_of_pid(of_pid.output) : 0;
  if (caller.job == 0) {
    caller.why_no_account = "Slurm knows no job of this process";
    return;
  }
  const CommandResult of_job =
      ask_slurm(policy, "squeue", {"-h", "-j", std::to_string(caller.job), "-o", "%U %a"});
  if (!of_job.good()) {
    caller.why_no_account = of_job.complaint("squeue");
    return;
  }
  caller.account = parse_job_account(of_job.output, caller.job, caller.uid);
}

}  // namespace

std::int64_t parse_job_of_pid(std::string_view text) {
  constexpr std::string_view kWords = "Slurm job id ";
  const std::size_t at = text.find(kWords);
  if (at == std::string_view::npos) {
    return 0;
  }
  const std::string_view rest = text.substr(at + kWords.size());
  std::int64_t job = 0;
  const auto [end, code] = std::from_chars(rest.data(), rest.data() + rest.size(), job);
  const bool ends = end != rest.data() + rest.size() && *end == ' ';
  return code == std::errc() && ends && job > 0 ? job : 0;
}

std::string parse_job_account(std::string_view text, std::int64_t job, uid_t uid) {
  std::string account;
  while (!text.empty()) {  // a line for each task of an array
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos || line.substr(0, blank) != std::to_string(uid)) {
      throw PolicyError(
          fmt::format("the job {} of this process belongs to the user '{}', not to {}", job,
                      printable(line.substr(0, blank)), uid));
    }
    account = line.substr(blank + 1);
  }
  return account == "(null)" ? "" : account;
}

std::string Caller::to_string() const {
  return fmt::format("{} (user {}, groups {}{})", printable(user), uid, fmt::join(groups, ", "),
                     account.empty() ? "" : fmt::format(", account {}", printable(account)));
}

Caller this_caller(const Policy& policy) {
  Caller caller;
  caller.uid = ::geteuid();
  caller.user = name_of_user(caller.uid);
  caller.groups = kernel_groups();
  if (policy.names_accounts()) {
    find_account(policy, caller);
  }
  return caller;
}

std::vector<HeldRole> roles_of(const Caller& caller, const Policy& policy) {
  std::vector<HeldRole> held;
  for (const Role& role : policy.roles) {
    std::string why;
    for (const std::string& name : role.groups) {
      const std::optional<gid_t> number = group_number(name);
      if (!number) {
        throw PolicyError(fmt::format(
            "/etc/trireme/policy.yaml: roles.{}.groups names '{}', a group that this host does not "
            "have: correct the name, or make the group",
            role.name, printable(name)));
      }
      if (why.empty() && std::binary_search(caller.groups.begin(), caller.groups.end(), *number)) {
        why = "group " + name;
      }
    }
    const bool has_account =
        !caller.account.empty() && std::find(role.accounts.begin(), role.accounts.end(),
                                             caller.account) != role.accounts.end();
    if (why.empty() && has_account) {
      why = fmt::format("account {} of job {}", caller.account, caller.job);
    }
    if (!why.empty()) {
      held.push_back({&role, why});
    }
  }
  return held;
}

}  // namespace trireme
