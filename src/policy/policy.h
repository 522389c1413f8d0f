// Policy is what /etc/trireme/policy.yaml says: which site this is, which roles there are, and what
// each of them may do with which data. A value; parse_policy() is a pure function.
//
//   version: 1
//   site:
//     name: north
//     jurisdiction: AE
//     hosts: ["n*", login1]            names of the hosts, with * and ? as in the shell
//     mounts: [/data, /scratch]        file systems, by mount point, on which data may lie
//   classifications: [public, internal, secret]    from the lowest
//   unlabelled: refuse                             or allow
//   roles:
//     trainer:
//       groups: [ml]                   Unix groups, as the kernel knows them of a process
//       accounts: [project1]           or accounts of Slurm, as Slurm's daemons know them
//       read: {highest: secret, folders: [/data], owners: [health]}
//       write: {highest: secret, folders: [/scratch]}
//   release: {keys: /etc/trireme/releasers.pem, signers: 2, above: public}
//   slurm: /usr/bin                    folder of Slurm's commands, if there are accounts
//
// The roles and what each of them can be granted are fixed:
//
//   role            read                    write         export        keys
//   trainer         datasets, checkpoints   checkpoints
//   data_steward    datasets                datasets      datasets
//   key_custodian                                                       both
//   auditor         datasets, checkpoints
//   releaser        checkpoints                           checkpoints
//
// To erase something, the right to write it is needed.
#pragma once

#include <array>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/policy/label.h"

namespace trireme {

enum class Deed { read, write, export_plain, keys };
enum class Thing { dataset, checkpoint };
inline constexpr std::array kDeeds = {Deed::read, Deed::write, Deed::export_plain, Deed::keys};

// Returns "read", "write", "export" or "keys", as in the policy.
std::string_view word_of(Deed deed);
// Returns "dataset" or "checkpoint".
std::string_view word_of(Thing thing);

struct Grant {
  std::string highest;                         // classification
  std::vector<std::filesystem::path> folders;  // absolute; everything below them
  std::vector<std::string> owners;             // empty: all owners
};

struct Role {
  std::string name;
  std::vector<std::string> groups;
  std::vector<std::string> accounts;
  std::map<Deed, Grant> grants;
};

struct SiteDescriptor {
  std::string name;
  std::string jurisdiction;
  std::vector<std::string> hosts;  // patterns; empty: any
  std::vector<std::filesystem::path> mounts;
};

struct ReleaseRule {
  std::filesystem::path keys;  // trust file of the releasers
  int signers = 2;
  std::string above;  // classification up to which nobody has to sign; empty: everything is signed
};

struct Policy {
  SiteDescriptor site;
  std::vector<std::string> classifications;  // lowest first
  bool refuses_unlabelled = true;
  std::vector<Role> roles;
  std::optional<ReleaseRule> release;
  std::filesystem::path slurm = "/usr/bin";
  std::string sha256;  // of the file

  // Returns the place of a classification in the order, or -1.
  int rank_of(std::string_view classification) const;
  bool names_accounts() const;
};

// Returns whether the role can be granted the deed on the thing at all.
bool role_allows(std::string_view role, Deed deed, Thing thing);

// Throws ConfigError that names `origin` and the line: for YAML outside the subset of
// configurations, for unknown keys, roles and words, for missing ones, and for contradictions.
Policy parse_policy(std::string_view yaml, const std::string& origin);

}  // namespace trireme
