// Replaces names of hosts and users, and addresses, by pseudonyms that are the same throughout an
// archive: host-1, user-2, domain-1, address-3. Values.
#pragma once

#include <string>
#include <string_view>

#include "src/study/anonymity/pseudonyms.h"

namespace trireme {

class NameWords;

class Anonymity {
 public:
  // Makes a name known. A host's name may have a domain, which is replaced by itself.
  void add_host(const std::string& name);
  void add_user(const std::string& name);
  // Keeps what the text calls host-1, user-2 and the like from becoming a pseudonym. Do so with all
  // texts before names become known.
  void avoid(std::string_view text) { names_.avoid(text); }
  // Learns the hosts and users that a text names: values of host, nodes, user and the like in JSON,
  // YAML and the environment, columns of tables, lists of hosts behind options, the hosts of ranks
  // and job steps in logs, hosts of a known domain, jane@n1, and folders below /home. Read all
  // texts twice: one may tell what another means.
  void learn(std::string_view text);
  // Replaces all known names where they are whole words, host lists such as n[1-4] of known hosts,
  // IPv4, IPv6 and hardware addresses, and mail addresses.
  std::string apply(std::string_view text);
  std::size_t names() const { return names_.size(); }

 private:
  void add(const std::string& name, const char* kind);
  void add_hosts(const std::string& list);
  void learn_words(std::string_view text);
  void learn_login(const NameWords& words);
  bool is_known_with_domain(std::string_view word) const;
  bool is_login_of_known(std::string_view word) const;
  std::string list_in_its_place(std::string_view list);
  std::size_t append_list(std::string_view text, std::size_t begin, std::size_t bracket,
                          std::string& result);
  void append_numbers(std::string_view text, std::size_t at, std::size_t end, std::string& result);
  void append_json(std::string_view text, std::size_t at, std::size_t end, std::string& result);
  struct TextPart {
    std::size_t begin = 0, end = 0;
  };
  TextPart next_address(std::string_view word, std::size_t at) const;
  std::string word_in_its_place(std::string_view word);

  Pseudonyms names_;
};

}  // namespace trireme
