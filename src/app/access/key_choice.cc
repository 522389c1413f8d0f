#include "src/app/access/key_choice.h"

#include <unistd.h>

#include "src/app/access/folder_access.h"

namespace trireme {

void KeyChoice::add_to(CommandLine& command) {
  command
      .add_option("--key", uris,
                  "A key that opens what is encrypted, such as file:/etc/trireme/site.key; can be "
                  "repeated (default: encryption.keys of the site)")
      .one_value_per_use()
      .type_name("URI");
}

KeyOptions KeyChoice::options() const {
  const EncryptionConfig site = site_encryption_config(environ);
  return {uris.empty() ? site.keys : uris, site.accept_plain, site.accept_plain_data};
}

KeyedTextReader KeyChoice::reader() const {
  const auto admit = [ask = access](const std::filesystem::path& folder, const std::string& label) {
    if (ask) {
      check_logs_access(ask(), Deed::read, folder, label);
    }
  };
  return KeyedTextReader([choice = *this] { return choice.options().uris; }, admit);
}

}  // namespace trireme
