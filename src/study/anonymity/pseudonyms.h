// The names that are known, and what stands for them in an archive: host-1, user-2. Values.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>

namespace trireme {

class Pseudonyms {
 public:
  // Returns the pseudonym of a name, which becomes known. kind: such as "host".
  std::string alias(const std::string& name, const char* kind);
  // Keeps what the text calls host-1, user-2 and the like from becoming a pseudonym.
  void avoid(std::string_view text);

  // Returns the pseudonym of a name, or null. The case of hosts and domains means nothing.
  const std::string* find(std::string_view name) const;
  bool contains(std::string_view name) const;  // in this case
  bool is_host(std::string_view name) const;
  // Returns whether a host is called `front`, up to its first dot, or something that begins so.
  bool has_host_like(const std::string& front) const;
  bool in_known_domain(std::string_view word) const;
  // Replaces known names within a word such as "n1.cluster:4000" or "job-jane".
  std::string names_in_their_place(std::string_view word) const;
  std::size_t size() const { return aliases_.size(); }

 private:
  std::map<std::string, std::string> aliases_;
  std::size_t longest_ = 0;            // bytes of the longest name
  std::map<std::string, int> counts_;  // by kind
  std::set<std::string> taken_;        // what the texts hold that looks like a pseudonym
};

}  // namespace trireme
