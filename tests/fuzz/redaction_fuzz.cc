// Plants a secret in each of the forms that an archive promises to find, beside any other bytes,
// and figures in JSON: no archive holds the secret, and all figures stay.
#include <algorithm>
#include <array>
#include <optional>

#include <nlohmann/json.hpp>

#include "src/study/anonymity/anonymity.h"
#include "src/study/redaction/hidden_texts.h"
#include "src/study/redaction/redaction.h"
#include "tests/fuzz/fuzz_target.h"

namespace planted_secrets {

// %% stands for the secret. Each form ends a line, so that what follows cannot be part of it.
constexpr std::array<std::string_view, 29> kForms = {
    "password: %%",
    "\"api_key\": \"%%\"",
    "secret:\n  - a\n  - %%",
    "pin: |\n  a\n  %%",
    "DB_PASS=%%",
    "DB_PASS=+%%",
    "x --pin a\\q%% --n 4",
    "{pin: Some(\"%%\"), a: 1}",
    "API key 2: %%",
    "user,\"full, name\",pin\njoe,a,b\"%%",
    "export DB_PASS='%%' X=1",
    "x --auth-token %% --nodes 4",
    "x --pin=%% y",
    "{\"a\": [{\"password\": [\"%%\"]}], \"loss\": 2.5}",
    "{\"name\": \"pin\", \"value\": \"%%\"}",
    "[\"x\", \"--pin\", \"%%\"]",
    "<a><pin b='c'>%%</pin></a>",
    "<a>x --pin b&lt;%% --n 4</a>",
    "<!-- pin: %% -->",
    "user,pin\njoe,%%",
    "| user | pin |\n|---|---|\n| joe | %% |",
    "pin\t%%",
    "the password is %%, he said",
    "https://joe:%%@host/path",
    "curl -su joe:%% h",
    "Authorization: Basic %%",
    "x Bearer %%",
    "cfg[\"db\"][\"pin\"] = \"%%\"",
    "hf_%%%%"};

std::string planted(std::string_view form, std::string_view secret) {
  std::string text;
  for (std::size_t at = 0; at < form.size();) {
    const bool mark = form.substr(at).starts_with("%%");
    text += mark ? secret : form.substr(at, 1);
    at += mark ? 2 : 1;
  }
  return text;
}

// Takes a secret of letters and digits, and a number, from the input.
std::string secret_from(std::string_view bytes) {
  constexpr std::string_view kLetters =
      "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ0123456789";
  std::string secret = "q7Z";
  for (const char c : bytes.substr(0, 12)) {
    secret += kLetters[static_cast<unsigned char>(c) % kLetters.size()];
  }
  return secret + std::string(16 - std::min<std::size_t>(secret.size(), 15), 'x');
}

// Returns whether a list that holds this text of five bytes may be refused: it has a byte of zero,
// or, without the mark of UTF-8 and cut at carriage returns, texts of less than three bytes.
bool may_be_refused(std::string_view listed) {
  return listed.find_first_of(std::string_view("\0\r", 2)) != listed.npos ||
         listed.starts_with("\xEF\xBB\xBF");
}

}  // namespace planted_secrets

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string_view input = trireme::text_of(data, bytes);
  const std::size_t half = input.find('\n');
  const std::string_view rest = half == input.npos ? input : input.substr(half + 1);
  const std::string secret = planted_secrets::secret_from(input);
  for (const std::string_view form : planted_secrets::kForms) {
    const std::string text = planted_secrets::planted(form, secret) + "\n";
    const trireme::Redacted alone = trireme::redact(text);
    trireme::require(alone.text.find(secret) == std::string::npos && alone.secrets > 0);
  }
  // The same beside the other bytes, which choose a form.
  const std::size_t chosen = input.empty() ? 0 : static_cast<unsigned char>(input[0]);
  const std::string text = planted_secrets::planted(
      planted_secrets::kForms[chosen % planted_secrets::kForms.size()], secret);
  const std::string beside = std::string(rest) + "\n" + text + "\n" + std::string(rest);
  trireme::require(trireme::redact(beside).text.find(secret) == std::string::npos);
  // A listed text stands in nothing that was not replaced.
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::string listed(rest.substr(0, 5));
  if (listed.size() == 5 && listed.find('\n') == listed.npos &&
      kBlanks.find(listed[0]) == kBlanks.npos && kBlanks.find(listed[4]) == kBlanks.npos) {
    std::optional<trireme::HiddenTexts> hidden;
    trireme::refuses_only_with<trireme::DataError>([&] { hidden.emplace(listed); });
    trireme::require(hidden || planted_secrets::may_be_refused(listed));
    const std::string shown = hidden ? hidden->apply(input).text : "";
    for (std::size_t at = 0; at <= shown.size();) {
      const std::size_t end = std::min(shown.find(trireme::kRedacted, at), shown.size());
      trireme::require(shown.substr(at, end - at).find(listed) == std::string::npos);
      at = end + trireme::kRedacted.size();
    }
  }
  // Figures in a line of metrics, whose text is any bytes.
  nlohmann::json line = {{"step", bytes},
                         {"loss", 1.0 / (1.0 + static_cast<double>(bytes))},
                         {"tokens", {1, bytes}},
                         {"pass", 3}};
  line["message"] = std::string(rest);
  const std::string metrics =
      line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  trireme::Anonymity anonymity;
  const std::string redacted = trireme::redact(metrics).text;
  anonymity.learn(redacted);
  const std::string archived = anonymity.apply(redacted);
  const auto again = nlohmann::json::parse(archived);
  for (const char* key : {"step", "loss", "tokens", "pass"}) {
    trireme::require(again.contains(key) && again[key] == line[key]);
  }
  return 0;
}
