#include "src/keys/wrapped_keys.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "src/base/base64.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/base/sealed_json.h"
#include "src/keys/passphrase_key.h"

namespace trireme {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view kFormat = "trireme-keys";
constexpr std::int64_t kVersion = 1;
constexpr std::size_t kMostRecipients = 1000;
constexpr std::size_t kMostNameBytes = 200;

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_word(std::string_view text) {
  return !text.empty() && text.size() <= 200 &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
             std::string_view::npos;
}

Recipient parse_recipient(const json& object) {
  Recipient recipient{text_field(object, "kind"), text_field(object, "key"),
                      text_field(object, "name"), from_base64(text_field(object, "wrapped")),
                      JsonValue(object_field(object, "parameters"))};
  if (!is_word(recipient.kind) || !is_word(recipient.key)) {
    throw DataError("a recipient's kind or key is not a word");
  }
  if (recipient.name.size() > kMostNameBytes) {
    throw DataError(fmt::format("a recipient's name has more than {} bytes", kMostNameBytes));
  }
  return recipient;
}

WrappedKeys parse_fields(const json& object) {
  if (text_field(object, "format") != kFormat) {
    throw DataError("not a file of wrapped keys");
  }
  WrappedKeys keys;
  keys.data_key = text_field(object, "data_key");
  keys.contents = text_field(object, "contents");
  keys.mac = text_field(object, "mac");
  if (!is_hex(keys.data_key, 32) || !is_hex(keys.mac, 64)) {
    throw DataError("data_key or mac does not have its number of hexadecimal digits");
  }
  for (const json& recipient : array_field(object, "recipients")) {
    keys.recipients.push_back(parse_recipient(recipient));
    if (keys.recipients.size() > kMostRecipients) {
      throw DataError(fmt::format("more than {} recipients", kMostRecipients));
    }
  }
  return keys;
}

}  // namespace

std::string WrappedKeys::expected_mac(const DataKey& key) const {
  std::string text = fmt::format("{} {}\n", data_key, contents);
  for (const Recipient& recipient : recipients) {
    text +=
        fmt::format("{} {} {} {} {}\n", recipient.kind, recipient.key, to_base64(recipient.wrapped),
                    to_base64(recipient.name), to_base64(recipient.parameters->dump()));
  }
  return key.mac("keys", text);
}

void check_passphrases(const WrappedKeys& keys) {
  const auto count =
      std::count_if(keys.recipients.begin(), keys.recipients.end(),
                    [](const Recipient& recipient) { return recipient.kind == kPassphraseKind; });
  if (count > kMostPassphrases) {
    throw ConfigError(fmt::format(
        "{} recipients would be passphrases, but only {} are tried when the data is opened", count,
        kMostPassphrases));
  }
}

std::string to_text(const WrappedKeys& keys) {
  ordered_json recipients = ordered_json::array();
  for (const Recipient& recipient : keys.recipients) {
    recipients.push_back({{"kind", recipient.kind},
                          {"key", recipient.key},
                          {"name", recipient.name},
                          {"wrapped", to_base64(recipient.wrapped)},
                          {"parameters", ordered_json(*recipient.parameters)}});
  }
  return seal_json({{"version", kVersion},
                    {"format", kFormat},
                    {"data_key", keys.data_key},
                    {"contents", keys.contents},
                    {"recipients", std::move(recipients)},
                    {"mac", keys.mac}});
}

WrappedKeys parse_wrapped_keys(std::string_view text, const std::string& origin) {
  try {
    return parse_fields(unseal_json(text, kVersion));
  } catch (const DataError& error) {
    throw data_error_in(origin, error);
  }
}

void check_wrapped_keys(const WrappedKeys& keys, const DataKey& key, std::string_view seal,
                        const std::string& origin) {
  if (keys.data_key != key.id() || !same_mac(keys.mac, keys.expected_mac(key))) {
    throw DataError(
        fmt::format("{}: changed by someone who does not have the data key", printable(origin)));
  }
  if (keys.contents != seal) {
    throw DataError(
        fmt::format("{}: belongs to another manifest: the manifest beside it was replaced or "
                    "changed after it was written",
                    printable(origin)));
  }
}

}  // namespace trireme
