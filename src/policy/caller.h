// Caller is who runs this process, as far as others than its user vouch for it: the kernel for the
// Unix groups, and Slurm's daemons for the account of its job. Nothing is taken from the
// environment.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "src/policy/policy.h"

namespace trireme {

struct Caller {
  uid_t uid = 0;
  std::string user;                 // name, or the number if it has none
  std::vector<gid_t> groups;        // effective and supplementary
  std::int64_t job = 0;             // of Slurm; 0 outside a job
  std::string account;              // of that job, "" outside
  std::string why_no_account = {};  // why the account is unknown, if a role names accounts

  // Names the user, the groups' numbers and the account.
  std::string to_string() const;
};

// Asks the kernel, and Slurm if the policy names accounts: slurmd of this host for the job of the
// process (`scontrol pidinfo`), and slurmctld for that job's user and account (`squeue`), both with
// an empty environment. Call it before MPI starts.
Caller this_caller(const Policy& policy);

// Parses what `scontrol pidinfo PID` prints: "Slurm job id 42 ends at ...". Returns 0 for other
// text.
std::int64_t parse_job_of_pid(std::string_view text);
// Parses what `squeue -h -j ID -o "%U %a"` prints. Returns the account, or "" if there is none.
// Throws PolicyError if the job is not one of this user.
std::string parse_job_account(std::string_view text, std::int64_t job, uid_t uid);

struct HeldRole {
  const Role* role = nullptr;
  std::string why;  // "group ml" or "account project1 of job 42"
};
// Returns the roles that the caller has. Throws PolicyError if the policy names a group that this
// host does not have.
std::vector<HeldRole> roles_of(const Caller& caller, const Policy& policy);

}  // namespace trireme
