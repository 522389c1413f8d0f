// PassphraseKey is a wrapping key that scrypt derives from a passphrase (scrypt.h). A process wraps
// with one random salt, so that it computes scrypt once; each other salt that it meets costs once
// more. The identity is that of DataKey, of the derived bytes, and therefore differs for each salt.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string_view>

#include "src/keys/scrypt.h"
#include "src/keys/wrapping_key.h"

namespace trireme {

// More passphrases than this are not tried for one data key, since each takes the time of scrypt.
inline constexpr int kMostPassphrases = 16;

class PassphraseKey final : public WrappingKey {
 public:
  static constexpr std::size_t kLeastBytes = 8;
  static constexpr std::string_view kTypedTitle = "the passphrase typed on the terminal";

  // Reads the first line of a file. Throws NotFound if there is none, PolicyError if others can use
  // it, and DataError if the line is shorter than kLeastBytes.
  static std::unique_ptr<PassphraseKey> load(const std::filesystem::path& path);
  // Asks on the terminal when the key is first used: once to unwrap, twice to wrap. Throws
  // ConfigError at once if this process cannot ask.
  static std::unique_ptr<PassphraseKey> ask();

  // Both throw ConfigError if the user cancels or types two different passphrases. unwrap() throws
  // PolicyError after 16 recipients of one data key that are other passphrases, since each takes
  // the time of scrypt.
  Recipient wrap(const DataKey& key) override;
  std::optional<DataKey> unwrap(const Recipient& recipient, std::string_view data_key_id) override;
  std::string title() const override { return title_; }

 private:
  explicit PassphraseKey(std::string title) : title_(std::move(title)) {}
  const Secret& passphrase(bool is_to_wrap);
  // Returns the key for the salt of this process.
  const DataKey& own_key();
  void count_stranger(std::string_view data_key_id);

  std::string title_;
  std::optional<Secret> passphrase_;
  bool is_confirmed_ = false;  // known to be what the user means
  ScryptParameters own_parameters_ = ScryptParameters::fresh();
  std::optional<DataKey> own_key_;
  std::map<std::string, DataKey> known_;  // keys that unwrapped something, by identity
  std::string strangers_of_;              // a data key
  int strangers_ = 0;                     // how many of its recipients were other passphrases
};

inline constexpr std::string_view kPassphraseKind = "passphrase";

}  // namespace trireme
