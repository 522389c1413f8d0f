#include "src/study/secret_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

namespace trireme {
namespace {

// Names are compared without separators and in lower case, so that apiKey is api_key.
constexpr std::array<std::string_view, 13> kSecretParts = {
    "password",   "passwd",    "passphrase", "secret",    "credential",  "passwort",   "kennwort",
    "privatekey", "accesskey", "apikey",     "authtoken", "accesstoken", "bearertoken"};
// A plural is a secret, too.
constexpr std::array<std::string_view, 19> kSecretEnds = {
    "accountkey", "storagekey",    "sharedkey", "signingkey", "encryptionkey",
    "masterkey",  "authkey",       "sshkey",    "tlskey",     "sslkey",
    "licensekey", "authorization", "cookie",    "pwd",        "bindpw",
    "dbpass",     "smtppass",      "userpass",  "jwt"};
// Whole names, or the last of several words, as in user_pin and db.pass.
constexpr std::array<std::string_view, 3> kSecretLastWords = {"pin", "pass", "pins"};
constexpr std::array<std::string_view, 4> kHarmlessPasses = {"forward", "backward", "first",
                                                             "second"};
// What benchmarks call a pass.
constexpr std::array<std::string_view, 5> kPasses = {"forward", "backward", "data_gradient",
                                                     "weight_gradient", "-"};
// Ends of variables of the environment.
constexpr std::array<std::string_view, 6> kSecretVariables = {"_KEY",  "_PASS", "_PAT",
                                                              "_KEYS", "_PATS", "_PW"};
constexpr std::array<std::string_view, 7> kHarmlessNames = {
    "PWD",         "OLDPWD",          "PUBLIC_KEY",     "SSH_PUBLIC_KEY",
    "PUBLIC_KEYS", "SSH_PUBLIC_KEYS", "secrets_removed"};
// Words before "token" in names that mean tokens of text, or rates per token.
constexpr std::array<std::string_view, 17> kHarmlessTokens = {
    "bos",  "eos", "unk",  "pad",   "cls",     "sep",   "mask",  "per",  "next",
    "last", "end", "stop", "first", "special", "added", "image", "start"};
// Unquoted values that hold nothing.
constexpr std::array<std::string_view, 6> kNothing = {"null", "none", "nil", "true", "false", "~"};
// Parameters of a URL that sign it or stand for an account.
constexpr std::array<std::string_view, 5> kSecretParameters = {"sig", "signature", "key", "code",
                                                               "auth"};
// Keys of common services.
struct Form {
  std::string_view begin;
  std::size_t least;  // characters behind it
};
constexpr std::array kForms = {
    Form{"hf_", 20},    Form{"ghp_", 20},     Form{"gho_", 20},      Form{"ghs_", 20},
    Form{"ghu_", 20},   Form{"ghr_", 20},     Form{"glpat-", 16},    Form{"github_pat_", 20},
    Form{"xoxb-", 16},  Form{"xoxp-", 16},    Form{"xoxa-", 16},     Form{"xapp-", 16},
    Form{"sk-", 20},    Form{"sk_live_", 16}, Form{"rk_live_", 16},  Form{"AKIA", 16},
    Form{"ASIA", 16},   Form{"AIza", 30},     Form{"ya29.", 20},     Form{"eyJ", 40},
    Form{"npm_", 30},   Form{"pypi-", 16},    Form{"dckr_pat_", 16}, Form{"hvs.", 20},
    Form{"nvapi-", 20}, Form{"gsk_", 20},     Form{"SG.", 30},       Form{"AGE-SECRET-KEY-", 20}};
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
  }
  if (std::any_of(kSecretParts.begin(), kSecretParts.end(),
                  [&](std::string_view part) { return joined.find(part) != std::string::npos; })) {
    return true;
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
  joined.resize(joined.size() - (joined.ends_with('s') && !joined.ends_with("ss") ? 1 : 0));
  if (joined.ends_with("token")) {
    joined.resize(joined.size() - 5);
    return !ends_with_one(joined, kHarmlessTokens);
  }
  return ends_with_one(joined, kSecretEnds) || joined.ends_with("pinvalue");
}

bool is_harmless_value(std::string_view name, std::string_view value) {
  std::string word;
  for (const char c : value.substr(0, value.find_first_of(" \t\r\n"))) {
    word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  word.erase(word.find_last_not_of(",;:)]}\\") + 1);
  const bool whole = value.find_first_not_of(",;)]}\\ \t\r\n", word.size()) == std::string::npos;
  if (whole && (word.empty() || contains(kNothing, word))) {
    return true;
  }
  const std::string last = words_of_name(name).back();
  if (last == "pass") {
    return whole && contains(kPasses, word);
  }
  // Numbers of tokens, such as 384, 1.2e9 or 16k.
  return last.ends_with("tokens") && !word.empty() &&
         std::isdigit(static_cast<unsigned char>(word[0])) != 0 &&
         word.find_first_not_of("0123456789.,_e+-") >= word.size() - 1;
}

bool is_key_of_known_form(std::string_view word) {
  return std::any_of(kForms.begin(), kForms.end(), [&](const Form& form) {
    return word.starts_with(form.begin) && word.size() >= form.begin.size() + form.least;
  });
}

char password_option(std::string_view program, std::string_view before) {
  constexpr std::array<std::string_view, 6> kWithLogin = {"docker", "podman",  "helm",
                                                          "skopeo", "buildah", "nerdctl"};
  const bool p = program == "sshpass" || (program == "login" && contains(kWithLogin, before));
  return p ? 'p' : program == "redis-cli" ? 'a' : '\0';
}

bool is_secret_parameter(std::string_view name) {
  return contains(kSecretParameters, words_of_name(name).back());
}

}  // namespace trireme
