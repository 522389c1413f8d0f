// Finds the passwords in command lines, as in `curl -u jane:secret` and `sshpass -p secret`.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/study/redaction/secret_text.h"

namespace trireme {

// CommandSecrets is told the words of a text one by one. All places are offsets in bytes.
class CommandSecrets {
 public:
  explicit CommandSecrets(std::string_view text) : text_(text) {}

  // Takes the next word, which is at [begin, end) and without escapes is `word`. Returns the secret
  // that it gives a program: the rest of the word, or what follows it.
  std::optional<TextRange> next(const std::string& word, std::size_t begin, std::size_t end);
  const std::string& previous() const { return previous_; }  // the word before the latest one

 private:
  std::optional<TextRange> secret_of(const std::string& word, std::size_t begin, std::size_t end);
  TextRange option_value(std::size_t at) const;

  std::string_view text_;
  std::string previous_;
  std::string latest_;
  bool joined_ = false;             // the password may follow the letter
  char letter_ = 0;                 // of the option that gives the current command a password
  std::size_t end_of_command_ = 0;  // of its line, if it still lacks that option
  std::size_t end_of_curl_ = 0;     // of the current command line of curl
};

}  // namespace trireme
