// Finds hosts and users that lists and tables name: block lists of YAML, columns, lines of a name
// and its value. Pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme {

// Returns whether a key or variable is that of a host or a list of hosts, such as "nodes" or
// SLURM_JOB_NODELIST, or of a user, in any case.
bool is_host_key(std::string_view key);
bool is_user_key(std::string_view key);

struct ListedNames {
  std::vector<std::string> hosts;  // each may be a list such as n[1-4]
  std::vector<std::string> users;
};

// Returns the names
//   - in block lists of YAML ("hosts:\n  - n1"), also as "- name: n1", and keys with a digit in
//     mappings of hosts, as in inventories of Ansible;
//   - in columns with the name of a host's or user's key, between commas, semicolons, tabs, bars,
//   or
//     aligned with at least two blanks, or with one if the header has capital letters only;
//   - behind such a key at the start of a line of two columns.
// A line such as "host,state" may be a header or a pair: both are taken, but for words that usually
// name columns and states.
ListedNames listed_names(std::string_view text);

}  // namespace trireme
