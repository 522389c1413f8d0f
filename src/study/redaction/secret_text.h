// Finds secrets in forms that are no assignments: private keys, hashes of passwords, calls, lines
// of Dockerfiles and sentences. Pure functions; all places are offsets in bytes.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

namespace trireme {

struct TextRange {
  std::size_t begin = 0, end = 0;
};

// Returns the end of a private key in PEM that begins at `at`, or `at` if there is none.
std::size_t end_of_private_key(std::string_view text, std::size_t at);

// Returns the end of a hash of crypt(3), such as $6$salt$..., that begins with the dollar at `at`,
// or `at` if there is none. Backslashes may stand before the dollars, and dollars be doubled.
std::size_t end_of_crypt_hash(std::string_view text, std::size_t at);

// Returns the values of a name at [begin, end) that stand behind it without an operator: in a
// sentence or a prompt (secret_sentences.h), in a call such as password("X"), or in a line of a
// Dockerfile, "ENV NAME VALUE".
std::vector<TextRange> unassigned_values(std::string_view text, std::string_view name,
                                         std::size_t begin, std::size_t end);

// Returns whether only words such as "export" and other assignments stand before `at` on its line.
bool begins_shell_assignment(std::string_view text, std::size_t at);

}  // namespace trireme
