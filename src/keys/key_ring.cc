#include "src/keys/key_ring.h"

#include <algorithm>

#include <fmt/ranges.h>

#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/keys/held_key.h"
#include "src/keys/key_uri.h"
#include "src/keys/passphrase_key.h"
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

// Returns what is said about a revoked recipient.
std::string revoked_text(const Recipient& recipient, const RevokedKey& found) {
  return fmt::format(
      "the key {} {} {} and opens nothing until `trireme keys rotate` has put another one in its "
      "place",
      printable(recipient.kind), printable(recipient.key), text_of_revoked(found));
}

bool opens(WrappingKey& wrapping, const Recipient& recipient, const std::string& data_key) {
  try {
    return wrapping.unwrap(recipient, data_key).has_value();
  } catch (const Error&) {
    return false;
  }
}

// A key of the ring that is a recipient as well does not open this because it is revoked.
struct RingKeys {
  std::vector<std::string> revoked;  // what is said about those
  std::vector<std::string> others;   // their titles
};

RingKeys keys_of(const KeyRing& ring, const WrappedKeys& keys,
                 const std::vector<RevokedKey>& revoked) {
  RingKeys found;
  for (const auto& wrapping : ring.keys()) {
    const auto same = std::find_if(keys.recipients.begin(), keys.recipients.end(),
                                   [&](const Recipient& recipient) {
                                     return find_revoked(revoked, recipient.key) != nullptr &&
                                            opens(*wrapping, recipient, keys.data_key);
                                   });
    if (same == keys.recipients.end()) {
      found.others.push_back(wrapping->title());
    } else {
      found.revoked.push_back(revoked_text(*same, *find_revoked(revoked, same->key)));
    }
  }
  return found;
}

[[noreturn]] void refuse_to_open(const KeyRing& ring, const WrappedKeys& keys,
                                 const std::vector<RevokedKey>& revoked,
                                 const std::string& origin) {
  if (keys.recipients.empty()) {
    throw PolicyError(fmt::format(
        "{}: no key opens this any more: its last recipient was removed (`trireme keys destroy`)",
        printable(origin)));
  }
  const RingKeys given = keys_of(ring, keys, revoked);
  std::string text = fmt::format("{}: ", printable(origin));
  for (const std::string& each : given.revoked) {
    text += each + "; ";
  }
  text += fmt::format("this is encrypted for {}", recipients_text(keys));
  if (!given.others.empty()) {
    text += fmt::format(", and not for {}", fmt::join(given.others, ", "));
  } else if (given.revoked.empty()) {
    text += ", and no key was given";
  }
  text +=
      ": name one of these keys in encryption.keys or with --key, or let who has one add yours "
      "(`trireme keys add`)";
  for (const Recipient& recipient : keys.recipients) {
    const RevokedKey* const found = find_revoked(revoked, recipient.key);
    if (found != nullptr && given.revoked.empty()) {
      text += "; " + revoked_text(recipient, *found);
    }
  }
  throw PolicyError(text);
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

// Returns whether two keys are known to be one, without asking for a passphrase.
bool are_same(const WrappingKey& a, const WrappingKey& b) {
  const auto* const held = dynamic_cast<const HeldKey*>(&a);
  const auto* const other = dynamic_cast<const HeldKey*>(&b);
  if (held != nullptr && other != nullptr) {
    return held->id() == other->id();
  }
  // Passphrases that are typed have one title, and may be different ones.
  return a.title() == b.title() && a.title() != PassphraseKey::kTypedTitle;
}

}  // namespace

// A key that is named twice would otherwise be listed as two recipients.
KeyRing::KeyRing(const std::vector<std::string>& uris) {
  for (const std::string& uri : uris) {
    std::unique_ptr<WrappingKey> key = open_key(uri);
    const bool is_known = std::any_of(keys_.begin(), keys_.end(),
                                      [&](const auto& other) { return are_same(*key, *other); });
    if (is_known) {
      say(fmt::format("warning: {} is named twice; it counts once", key->title()));
    } else {
      keys_.push_back(std::move(key));
    }
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
