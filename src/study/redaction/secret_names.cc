#include "src/study/redaction/secret_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

namespace trireme {
namespace {

constexpr std::size_t kLongestSecretName = 256;  // bytes
constexpr std::ptrdiff_t kMostWords = 3;         // with blanks between them
constexpr int kMostNamesOfCounts = 64;           // of mappings, without a number between them

// Names are compared without separators and in lower case, so that apiKey is api_key.
constexpr std::array<std::string_view, 15> kSecretParts = {
    "password",  "passwd",      "passphrase",  "secret",    "credential",
    "passwort",  "kennwort",    "privatekey",  "accesskey", "apikey",
    "authtoken", "accesstoken", "bearertoken", "passcode",  "seedphrase"};
// A plural is a secret, too.
constexpr std::array<std::string_view, 37> kSecretEnds = {
    "accountkey",     "storagekey",    "sharedkey", "signingkey", "encryptionkey",
    "masterkey",      "authkey",       "sshkey",    "tlskey",     "sslkey",
    "licensekey",     "authorization", "cookie",    "pwd",        "bindpw",
    "dbpass",         "smtppass",      "userpass",  "jwt",        "appkey",
    "applicationkey", "servicekey",    "clientkey", "deploykey",  "subscriptionkey",
    "basicauth",      "proxyauth",     "storepass", "keypass",    "sessionid",
    "sessid",         "sshpass",       "rootpw",    "adminpw",    "authtok",
    "snmpcommunity",  "routingkey"};
// Whole names, or the last of several words, as in user_pin and db.pass.
constexpr std::array<std::string_view, 7> kSecretLastWords = {"pin", "pass", "pw",    "psk",
                                                              "otp", "totp", "bearer"};
// Words before these: passes of a training step, and cores to which threads are pinned.
constexpr std::array<std::string_view, 10> kHarmlessBefore = {
    "forward", "backward", "first", "second", "cpu", "core", "thread", "numa", "mpi", "tests"};
// Last words that make the name of a secret that of a count or a time.
constexpr std::array<std::string_view, 9> kHarmlessEnds = {
    "found", "removed", "detected", "count", "total", "length", "bytes", "seconds", "ms"};
// What benchmarks call a pass.
constexpr std::array<std::string_view, 5> kPasses = {"forward", "backward", "data_gradient",
                                                     "weight_gradient", "-"};
// Ends of variables of the environment.
constexpr std::array<std::string_view, 6> kSecretVariables = {"_KEY",  "_PASS", "_PAT",
                                                              "_KEYS", "_PATS", "_PW"};
constexpr std::array<std::string_view, 6> kHarmlessVariables = {
    "SORT_KEY", "PRIMARY_KEY", "FOREIGN_KEY", "CACHE_KEY", "PARTITION_KEY", "HOST_KEY"};
// Last words of names that tell one of several secrets from the others.
constexpr std::array<std::string_view, 15> kVariants = {
    "prod", "production", "dev",     "test",      "staging", "live",   "main", "old",
    "new",  "previous",   "primary", "secondary", "backup",  "base64", "b64"};
// PASS is the verdict of a test.
constexpr std::array<std::string_view, 7> kHarmlessNames = {
    "PWD", "OLDPWD", "PUBLIC_KEY", "SSH_PUBLIC_KEY", "PUBLIC_KEYS", "SSH_PUBLIC_KEYS", "PASS"};
// Words before "token" in names that mean tokens of text, or rates per token.
constexpr std::array<std::string_view, 17> kHarmlessTokens = {
    "bos",  "eos", "unk",  "pad",   "cls",     "sep",   "mask",  "per",  "next",
    "last", "end", "stop", "first", "special", "added", "image", "start"};
// Values that hold nothing, and the dash of a list's item.
constexpr std::array<std::string_view, 7> kNothing = {"null", "none",  "nil", "true",
                                                      "~",    "false", "-"};
// What separates the values of a list in YAML, JSON and other texts.
constexpr std::string_view kBetweenValues = " \t\r\n,;[]{}()\"'\\";
// Parameters of a URL that sign it or stand for an account.
constexpr std::array<std::string_view, 5> kSecretParameters = {"sig", "signature", "key", "code",
                                                               "auth"};
// Keys of common services.
struct Form {
  std::string_view begin;
  std::size_t least;  // characters behind it
};
constexpr std::array kForms = {
    Form{"hf_", 20},     Form{"ghp_", 20},     Form{"gho_", 20},      Form{"ghs_", 20},
    Form{"ghu_", 20},    Form{"ghr_", 20},     Form{"glpat-", 16},    Form{"github_pat_", 20},
    Form{"xoxb-", 16},   Form{"xoxp-", 16},    Form{"xoxa-", 16},     Form{"xapp-", 16},
    Form{"sk-", 20},     Form{"sk_live_", 16}, Form{"rk_live_", 16},  Form{"AKIA", 16},
    Form{"ASIA", 16},    Form{"AIza", 30},     Form{"ya29.", 20},     Form{"eyJ", 40},
    Form{"npm_", 30},    Form{"pypi-", 16},    Form{"dckr_pat_", 16}, Form{"hvs.", 20},
    Form{"nvapi-", 20},  Form{"gsk_", 20},     Form{"SG.", 30},       Form{"AGE-SECRET-KEY-", 20},
    Form{"dop_v1_", 20}, Form{"doo_v1_", 20},  Form{"dor_v1_", 20}};
template <std::size_t N>
bool contains(const std::array<std::string_view, N>& all, std::string_view one) {
  return std::find(all.begin(), all.end(), one) != all.end();
}

template <std::size_t N>
bool ends_with_one(std::string_view name, const std::array<std::string_view, N>& ends) {
  return std::any_of(ends.begin(), ends.end(),
                     [&](std::string_view end) { return name.ends_with(end); });
}

std::string lower_word(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return lower;
}

// Returns whether a word is a number such as 384, 1.2e9, 16k or 5ms.
bool is_number_with_unit(std::string_view word) {
  constexpr std::size_t kLongestUnit = 2;
  const std::size_t end = std::min(word.find_first_not_of("0123456789.,_e+-%"), word.size());
  const std::string_view unit = word.substr(end);
  return word.find_first_of("0123456789") < std::min<std::size_t>(2, end) &&
         unit.size() <= kLongestUnit && unit.find_first_of("0123456789:/") == unit.npos;
}

// The words of a name, in lower case. A capital behind a small letter begins one.
std::vector<std::string> words_of_name(std::string_view name) {
  std::vector<std::string> words(1);
  bool small = false;
  for (const char c : name) {
    if (small && std::isupper(static_cast<unsigned char>(c)) != 0) {
      words.emplace_back();
    }
    small = std::islower(static_cast<unsigned char>(c)) != 0;
    if (c == '_' || c == '-' || c == '.' || c == ' ') {
      words.emplace_back();
    } else {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    }
  }
  return words;
}

// Returns the variable of the environment with which a name such as env.X_KEY ends, joined by '_'.
std::string variable_at_end(std::string_view name) {
  constexpr std::string_view kOfVariables = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
  const std::size_t other = name.find_last_not_of(kOfVariables);
  name.remove_prefix(other == name.npos ? 0 : other + 1);
  name.remove_prefix(std::min(name.find_first_not_of("_-"), name.size()));
  std::string variable(name);
  std::replace(variable.begin(), variable.end(), '-', '_');
  return variable;
}

bool is_secret_variable(std::string_view name) {
  return ends_with_one(name, kSecretVariables) && !ends_with_one(name, kHarmlessVariables) &&
         !contains(kHarmlessNames, name);
}

// Returns a name without numbers and words at its end that tell one of several such secrets from
// the others, as in X_KEY_2 and db_pass_prod.
std::string_view without_variant(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kSigns = "_-.";
  while (true) {
    const std::size_t digits = name.find_last_not_of(kDigits) + 1;
    const std::size_t sign = name.find_last_of(kSigns) + 1;
    const bool variant = sign > 1 && contains(kVariants, lower_word(name.substr(sign)));
    const std::size_t end = digits < name.size() ? digits : variant ? sign : name.size();
    const std::size_t last = name.substr(0, end).find_last_not_of(kSigns) + 1;
    if (end == name.size() || last == 0) {
      return name;
    }
    name = name.substr(0, last);
  }
}

}  // namespace

bool is_secret_name(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  name = without_variant(name);
  if (name.empty() || name.size() > kLongestSecretName || contains(kHarmlessNames, name) ||
      name.find_first_of("\r\n<>") != std::string_view::npos) {
    return false;
  }
  std::string joined;
  const std::vector<std::string> words = words_of_name(name);
  for (const std::string& word : words) {
    joined += word;
  }
  if (std::count(name.begin(), name.end(), ' ') >= kMostWords) {  // a sentence
    return false;
  }
  if (std::any_of(kSecretParts.begin(), kSecretParts.end(),
                  [&](std::string_view part) { return joined.find(part) != std::string::npos; })) {
    return joined.find("secretar") == std::string::npos && !contains(kHarmlessEnds, words.back());
  }
  // A header. The program xauth has no dash.
  if (words.size() == 2 && (words[0] == "x" || words[0].empty()) && words[1] == "auth") {
    return true;  // X-Auth, or _auth of npm
  }
  const bool upper = std::none_of(name.begin(), name.end(), [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0;
  });
  // "12 PASS: " tells of a test.
  const bool verdict = name.ends_with("PASS") && !upper;
  if (contains(kSecretLastWords, words.back()) && !verdict &&
      (words.size() == 1 || !contains(kHarmlessBefore, words[words.size() - 2]))) {
    return true;
  }
  if (is_secret_variable(variable_at_end(name))) {
    return true;
  }
  joined.resize(joined.size() - (joined.ends_with('s') && !joined.ends_with("ss") ? 1 : 0));
  if (joined.ends_with("token")) {
    joined.resize(joined.size() - 5);
    return !ends_with_one(joined, kHarmlessTokens);
  }
  return ends_with_one(joined, kSecretEnds) || joined.ends_with("pinvalue");
}

bool is_made_harmless(std::string_view before, std::string_view name) {
  const std::vector<std::string> words = words_of_name(name);
  const std::string last = words_of_name(before).back();
  return words.size() == 1 &&
         (contains(kSecretLastWords, words[0])          ? contains(kHarmlessBefore, last)
          : words[0] == "token" || words[0] == "tokens" ? ends_with_one(last, kHarmlessTokens)
                                                        : false);
}

bool is_whole_name(std::string_view word) {
  return contains(kHarmlessNames, word) && word != "PASS";
}

bool is_variant(std::string_view word) {
  return contains(kVariants, lower_word(word)) ||
         word.find_first_not_of("0123456789") == std::string_view::npos;
}

bool counts_something(std::string_view name) {
  name.remove_prefix(std::min(name.find_first_not_of('-'), name.size()));
  name = without_variant(name);
  const std::vector<std::string> words = words_of_name(name);
  return words.back() == "tokens" ||
         (words.size() == 1 && (words[0] == "token" || words[0] == "pass"));
}

bool is_harmless_value(std::string_view name, std::string_view value) {
  const bool passes = words_of_name(name).back() == "pass";
  const bool counts = counts_something(name);
  // Three searches for one character each are faster than one for three.
  const bool line = value.find('\n') == value.npos && value.find('[') == value.npos &&
                    value.find('{') == value.npos;
  for (int names = 0; names <= kMostNamesOfCounts;) {
    value.remove_prefix(std::min(value.find_first_not_of(kBetweenValues), value.size()));
    const std::string_view word = value.substr(0, value.find_first_of(kBetweenValues));
    const std::string lower = lower_word(word);
    // N stands for a number in usage texts.
    const bool number = counts && (is_number_with_unit(word) || word == "N" || word == "N`");
    if (word.empty() || (line && number)) {
      return true;
    }
    const bool name_of_count = counts && !line && word.find(':') == word.size() - 1;
    if (!number && !contains(kNothing, lower) && !(passes && contains(kPasses, lower)) &&
        !name_of_count) {
      return false;
    }
    names = number ? 0 : names + (name_of_count ? 1 : 0);
    value.remove_prefix(word.size());
  }
  return false;
}

bool is_key_of_known_form(std::string_view word) {
  return std::any_of(kForms.begin(), kForms.end(), [&](const Form& form) {
    return word.starts_with(form.begin) && word.size() >= form.begin.size() + form.least;
  });
}

bool announces_key(std::string_view word) {
  constexpr std::array<std::string_view, 3> kMarks = {"Bearer", "bearer", "TRIREME-KEY-1"};
  return contains(kMarks, word);
}

char password_option(std::string_view program, std::string_view before) {
  constexpr std::array<std::string_view, 6> kWithLogin = {"docker", "podman",  "helm",
                                                          "skopeo", "buildah", "nerdctl"};
  constexpr std::array<std::pair<std::string_view, char>, 9> kLetters = {{{"sshpass", 'p'},
                                                                          {"redis-cli", 'a'},
                                                                          {"ipmitool", 'P'},
                                                                          {"ldapsearch", 'w'},
                                                                          {"ldapmodify", 'w'},
                                                                          {"ldapadd", 'w'},
                                                                          {"ldapdelete", 'w'},
                                                                          {"smbclient", 'U'},
                                                                          {"lftp", 'u'}}};
  if (program == "login" && contains(kWithLogin, before)) {
    return 'p';
  }
  const auto own = std::find_if(kLetters.begin(), kLetters.end(),
                                [&](const auto& each) { return each.first == program; });
  return own == kLetters.end() ? '\0' : own->second;
}

bool is_secret_option(std::string_view word) {
  return word.size() > 2 && word.starts_with('-') && is_secret_name(word) &&
         !word.ends_with("-stdin") && !word.starts_with("--no-");
}

bool is_password_name(std::string_view name) {
  return is_secret_name(name) && lower_word(name).find("pass") != std::string::npos;
}

bool takes_pair(std::string_view command) {
  constexpr std::array<std::string_view, 3> kCommands = {"setenv", "setx", "define"};
  return contains(kCommands, command);
}

bool is_user_option(std::string_view word) {
  return word == "-u" || word == "--user" || word == "--proxy-user";
}

std::size_t behind_user_letter(std::string_view word) {
  constexpr std::string_view kWithoutValue = "0123456aBfgGiIjJklLMnNOpqRsSvVZ#";
  const std::size_t letter =
      word.starts_with('-') ? word.find_first_not_of(kWithoutValue, 1) : std::string_view::npos;
  return letter != std::string_view::npos && (word[letter] == 'u' || word[letter] == 'U')
             ? letter + 1
             : 0;
}

bool is_user_and_password(std::string_view value) {
  return value.find(':') != std::string_view::npos &&
         value.find_first_not_of("0123456789:") != std::string_view::npos;
}

bool is_secret_parameter(std::string_view name) {
  return contains(kSecretParameters, words_of_name(name).back());
}

}  // namespace trireme
