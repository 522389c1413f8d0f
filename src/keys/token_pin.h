// TokenPin reads the PIN of a token when it is first needed: from the file that the URI names, or
// from the terminal. It keeps the PIN, to log in once more if the token was reset. A PIN that the
// token has refused is not tried again, because that would lock the token.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "src/keys/secret.h"

namespace trireme {

class TokenPin {
 public:
  // source: a file; empty: the terminal.
  explicit TokenPin(std::filesystem::path source) : source_(std::move(source)) {}

  // token: how the question on the terminal names the token. Throws what read_secret_line() or
  // ask_secret() throw, and PolicyError after mark_refused().
  const Secret& get(const std::string& token);
  void mark_refused() { is_refused_ = true; }

 private:
  std::filesystem::path source_;
  std::optional<Secret> pin_;
  bool is_refused_ = false;
};

}  // namespace trireme
