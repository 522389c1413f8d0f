#include "src/keys/key_ring.h"

#include <fmt/ranges.h>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/keys/key_uri.h"
#include "src/keys/revoked_keys.h"

namespace trireme {
namespace {

// Throws PolicyError if the site has revoked the wrapping key.
void check_not_revoked(const Recipient& recipient, const std::vector<RevokedKey>& revoked) {
  if (const RevokedKey* const found = find_revoked(revoked, recipient.key)) {
    throw PolicyError(
        fmt::format("the key {} {}{} {} and encrypts nothing: name another one in encryption.keys "
                    "or on the command line",
                    printable(recipient.kind), printable(recipient.key),
                    recipient.name.empty() ? "" : " '" + printable(recipient.name) + "'",
                    text_of_revoked(*found)));
  }
}

// Returns which recipients are revoked, for the end of a message.
std::string revoked_text(const WrappedKeys& keys, const std::vector<RevokedKey>& revoked) {
  std::string text;
  for (const Recipient& recipient : keys.recipients) {
    if (const RevokedKey* const found = find_revoked(revoked, recipient.key)) {
      text += fmt::format(
          "; the key {} {} {} and opens nothing until `trireme keys rotate` has put "
          "another one in its place",
          printable(recipient.kind), printable(recipient.key), text_of_revoked(*found));
    }
  }
  return text;
}

[[noreturn]] void refuse_to_open(const KeyRing& ring, const WrappedKeys& keys,
                                 const std::vector<RevokedKey>& revoked,
                                 const std::string& origin) {
  if (keys.recipients.empty()) {
    throw PolicyError(fmt::format(
        "{}: no key opens this any more: its last recipient was removed (`trireme keys destroy`)",
        printable(origin)));
  }
  std::vector<std::string> titles;
  for (const auto& wrapping : ring.keys()) {
    titles.push_back(wrapping->title());
  }
  throw PolicyError(fmt::format(
      "{}: this is encrypted for {}, and {}: name one of these keys in encryption.keys or with "
      "--key, or let who has one add yours (`trireme keys add`){}",
      printable(origin), recipients_text(keys),
      titles.empty() ? "no key was given" : fmt::format("not for {}", fmt::join(titles, ", ")),
      revoked_text(keys, revoked)));
}

// Returns the data key with any key of the ring that is not among the revoked ones.
DataKey unwrap_unless(const std::vector<RevokedKey>& revoked, const KeyRing& ring,
                      const WrappedKeys& keys, const std::string& origin) {
  for (const auto& wrapping : ring.keys()) {
    for (const Recipient& recipient : keys.recipients) {
      if (find_revoked(revoked, recipient.key) != nullptr) {
        continue;
      }
      try {
        if (std::optional<DataKey> key = wrapping->unwrap(recipient, keys.data_key)) {
          return std::move(*key);
        }
      } catch (const DataError& error) {
        throw data_error_in(origin, error);
      }
    }
  }
  refuse_to_open(ring, keys, revoked, origin);
}

}  // namespace

KeyRing::KeyRing(const std::vector<std::string>& uris) {
  for (const std::string& uri : uris) {
    keys_.push_back(open_key(uri));
  }
}

WrappedKeys KeyRing::wrap(const DataKey& key, std::string contents) const {
  WrappedKeys wrapped;
  wrapped.data_key = key.id();
  wrapped.contents = std::move(contents);
  const std::vector<RevokedKey> revoked = site_revoked_keys();
  for (const auto& wrapping : keys_) {
    wrapped.recipients.push_back(wrapping->wrap(key));
    check_not_revoked(wrapped.recipients.back(), revoked);
  }
  check_passphrases(wrapped);
  wrapped.sign(key);
  return wrapped;
}

DataKey KeyRing::unwrap(const WrappedKeys& keys, const std::string& origin) const {
  return unwrap_unless(site_revoked_keys(), *this, keys, origin);
}

DataKey unwrap_to_change(const KeyRing& ring, const WrappedKeys& keys, const std::string& origin) {
  return unwrap_unless({}, ring, keys, origin);
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
