#include "src/keys/key_ring.h"

#include <fmt/ranges.h>

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/keys/key_uri.h"

namespace trireme {

KeyRing::KeyRing(const std::vector<std::string>& uris) {
  for (const std::string& uri : uris) {
    keys_.push_back(open_key(uri));
  }
}

WrappedKeys KeyRing::wrap(const DataKey& key, std::string contents) const {
  WrappedKeys wrapped;
  wrapped.data_key = key.id();
  wrapped.contents = std::move(contents);
  for (const auto& wrapping : keys_) {
    wrapped.recipients.push_back(wrapping->wrap(key));
  }
  check_passphrases(wrapped);
  wrapped.sign(key);
  return wrapped;
}

DataKey KeyRing::unwrap(const WrappedKeys& keys, const std::string& origin) const {
  for (const auto& wrapping : keys_) {
    for (const Recipient& recipient : keys.recipients) {
      try {
        if (std::optional<DataKey> key = wrapping->unwrap(recipient, keys.data_key)) {
          return std::move(*key);
        }
      } catch (const DataError& error) {
        throw DataError(fmt::format("{}: {}", printable(origin), error.what()));
      }
    }
  }
  if (keys.recipients.empty()) {
    throw PolicyError(fmt::format(
        "{}: no key opens this any more: its last recipient was removed (`trireme keys destroy`)",
        printable(origin)));
  }
  std::vector<std::string> titles;
  for (const auto& wrapping : keys_) {
    titles.push_back(wrapping->title());
  }
  throw PolicyError(fmt::format(
      "{}: this is encrypted for {}, and {}: name one of these keys in encryption.keys or with "
      "--key, or let who has one add yours (`trireme keys add`)",
      printable(origin), recipients_text(keys),
      titles.empty() ? "no key was given" : fmt::format("not for {}", fmt::join(titles, ", "))));
}

std::string recipients_text(const WrappedKeys& keys) {
  std::vector<std::string> texts;
  for (const Recipient& recipient : keys.recipients) {
    texts.push_back(
        fmt::format("{} {}{}", printable(recipient.kind), printable(recipient.key),
                    recipient.name.empty() ? "" : " '" + printable(recipient.name) + "'"));
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

}  // namespace trireme
