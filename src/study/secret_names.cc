#include "src/study/secret_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace trireme {
namespace {

// Names are compared without separators and in lower case, so that apiKey is api_key.
constexpr std::array<std::string_view, 30> kSecretEnds = {
    "password",      "passwd",        "passphrase", "secret",       "secretkey",  "apikey",
    "accesskey",     "privatekey",    "accountkey", "storagekey",   "sharedkey",  "signingkey",
    "encryptionkey", "masterkey",     "authkey",    "sshkey",       "licensekey", "credential",
    "credentials",   "authorization", "cookie",     "clientsecret", "pwd",        "bindpw",
    "dbpass",        "smtppass",      "userpass",   "accesskeyid",  "jwt",        "pinvalue"};
// Whole names, or the last of several words, as in user_pin and db.pass.
constexpr std::array<std::string_view, 2> kSecretLastWords = {"pin", "pass"};
constexpr std::array<std::string_view, 4> kHarmlessPasses = {"forward", "backward", "first",
                                                             "second"};
constexpr std::array<std::string_view, 5> kSecretWords = {"secret", "password", "passwd",
                                                          "passphrase", "credentials"};
// Ends of variables of the environment.
constexpr std::array<std::string_view, 4> kSecretVariables = {"_KEY", "_PASS", "_PAT", "_PW"};
constexpr std::array<std::string_view, 4> kHarmlessNames = {"PWD", "OLDPWD", "PUBLIC_KEY",
                                                            "SSH_PUBLIC_KEY"};
// Words before "token" in names that mean tokens of text, or rates per token.
constexpr std::array<std::string_view, 17> kHarmlessTokens = {
    "bos",  "eos", "unk",  "pad",   "cls",     "sep",   "mask",  "per",  "next",
    "last", "end", "stop", "first", "special", "added", "image", "start"};
// Parameters of a URL that sign it or stand for an account.
constexpr std::array<std::string_view, 5> kSecretParameters = {"sig", "signature", "key", "code",
                                                               "auth"};
template <std::size_t N>
bool contains(const std::array<std::string_view, N>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

template <std::size_t N>
bool ends_with_one(std::string_view name, const std::array<std::string_view, N>& ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

// The words of a name, in lower case.
std::vector<std::string> words_of_name(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == '_' || c == '-' || c == '.') {
      words.emplace_back();
    } else {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return words;
}

}  // namespace

bool is_secret_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  if (name.empty() || contains(kHarmlessNames, name)) {
    return false;
  }
  std::string joined;
  const std::vector<std::string> words = words_of_name(name);
  for (const std::string& word : words) {
    joined += word;
    if (contains(kSecretWords, word)) {
      return true;
    }
  }
  if (contains(kSecretLastWords, words.back()) &&
      (words.size() == 1 || !contains(kHarmlessPasses, words[words.size() - 2]))) {
    return true;
  }
  const bool upper = std::none_of(name.begin(), name.end(), [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0;
  });
  if (upper && ends_with_one(name, kSecretVariables)) {
    return true;
  }
  if (joined.ends_with("token")) {
    joined.resize(joined.size() - 5);
    return !ends_with_one(joined, kHarmlessTokens);
  }
  return ends_with_one(joined, kSecretEnds);
}

bool is_secret_parameter(std::string_view name) {
  return contains(kSecretParameters, words_of_name(name).back());
}

}  // namespace trireme
