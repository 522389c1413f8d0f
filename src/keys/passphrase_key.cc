#include "src/keys/passphrase_key.h"

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/keys/secret_source.h"

namespace trireme {
namespace {

constexpr std::string_view kAdvice =
    "write the passphrase to a file that only you can read, and name it as passphrase-file:PATH";
constexpr std::size_t kMostKnown = 64;
constexpr int kMostStrangers = kMostPassphrases;

}  // namespace

std::unique_ptr<PassphraseKey> PassphraseKey::load(const std::filesystem::path& path) {
  std::unique_ptr<PassphraseKey> key(
      new PassphraseKey(fmt::format("the passphrase in {}", printable(path.string()))));
  key->passphrase_ = read_secret_line(path, "a passphrase");
  if (key->passphrase_->bytes() < kLeastBytes) {
    throw DataError(fmt::format("{}: the passphrase has fewer than {} bytes: choose a longer one",
                                printable(path.string()), kLeastBytes));
  }
  key->is_confirmed_ = true;
  return key;
}

std::unique_ptr<PassphraseKey> PassphraseKey::ask() {
  check_terminal(kAdvice);
  return std::unique_ptr<PassphraseKey>(new PassphraseKey(std::string(kTypedTitle)));
}

const Secret& PassphraseKey::passphrase(bool is_to_wrap) {
  if (!passphrase_) {
    Secret typed = ask_secret("Passphrase:", kAdvice);
    if (typed.bytes() < kLeastBytes) {
      throw ConfigError(fmt::format("a passphrase has at least {} bytes", kLeastBytes));
    }
    passphrase_ = std::move(typed);
  }
  if (is_to_wrap && !is_confirmed_) {
    const Secret again = ask_secret("The passphrase again:", kAdvice);
    if (!same_mac(again.view(), passphrase_->view())) {
      passphrase_.reset();
      throw ConfigError("the two passphrases differ: nothing was encrypted");
    }
    is_confirmed_ = true;
  }
  return *passphrase_;
}

const DataKey& PassphraseKey::own_key() {
  if (!own_key_) {
    own_key_ = DataKey(scrypt(passphrase(true).view(), own_parameters_));
  }
  return *own_key_;
}

Recipient PassphraseKey::wrap(const DataKey& key) {
  const DataKey& own = own_key();
  return {std::string(kPassphraseKind), own.id(), "", wrap_with(own.bytes(), key),
          to_json(own_parameters_)};
}

void PassphraseKey::count_stranger(std::string_view data_key_id) {
  strangers_ = strangers_of_ == data_key_id ? strangers_ + 1 : 1;
  strangers_of_ = data_key_id;
  if (strangers_ == kMostStrangers) {
    throw PolicyError(
        fmt::format("{} opens none of {} recipients that are passphrases: no more of "
                    "them are tried",
                    title(), kMostStrangers));
  }
}

std::optional<DataKey> PassphraseKey::unwrap(const Recipient& recipient,
                                             std::string_view data_key_id) {
  if (recipient.kind != kPassphraseKind) {
    return std::nullopt;
  }
  const ScryptParameters parameters = parse_scrypt(recipient.parameters);
  std::optional<DataKey> derived;
  const auto known = known_.find(recipient.key);
  const bool is_own = own_key_ && own_key_->id() == recipient.key;
  if (!is_own && known == known_.end()) {
    derived = DataKey(scrypt(passphrase(false).view(), parameters));
    if (derived->id() != recipient.key) {
      count_stranger(data_key_id);
      return std::nullopt;
    }
  }
  const DataKey& wrapping = is_own ? *own_key_ : derived ? *derived : known->second;
  std::optional<DataKey> key = unwrap_with(wrapping.bytes(), recipient.wrapped, data_key_id);
  if (!key) {
    throw DataError(fmt::format("what is wrapped for {} was changed", title()));
  }
  is_confirmed_ = true;
  if (derived) {
    if (known_.size() == kMostKnown) {
      known_.clear();
    }
    known_.emplace(recipient.key, std::move(*derived));
  }
  return key;
}

}  // namespace trireme
