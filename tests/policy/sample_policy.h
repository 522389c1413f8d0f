// A policy for tests: trainers and stewards of the group "root", which every host has.
#pragma once

#include <string>

namespace trireme {

inline std::string sample_policy_text() {
  return "version: 1\n"
         "site: {name: north, jurisdiction: AE, hosts: ['n*', login1], mounts: [/data, /scratch]}\n"
         "classifications: [public, internal, secret]\n"
         "roles:\n"
         "  trainer:\n"
         "    groups: [root]\n"
         "    read: {highest: internal, folders: [/data, /scratch], owners: [health]}\n"
         "    write: {highest: internal, folders: [/scratch]}\n"
         "  key_custodian: {accounts: [custody], keys: {highest: secret, folders: [/]}}\n"
         "  releaser: {groups: [daemon], export: {highest: secret, folders: [/scratch]}}\n"
         "release: {keys: /etc/trireme/releasers.pem, signers: 2, above: public}\n";
}

// Returns the text with the first `from` replaced.
inline std::string with(std::string text, const std::string& from, const std::string& to) {
  return text.replace(text.find(from), from.size(), to);
}

}  // namespace trireme
