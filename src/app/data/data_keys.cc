#include "src/app/data/data_keys.h"

#include <optional>

#include <unistd.h>

#include "mpi/agreement.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/train/run/run_config.h"

namespace trireme {

void RecipientChoice::add_to(CommandLine& command) {
  command
      .add_option("--key", uris,
                  "Encrypt the dataset for this key, such as file:/etc/trireme/site.key; can be "
                  "repeated (default: encryption.keys of the site)")
      .one_value_per_use()
      .type_name("URI");
  command.add_flag("--plain", plain, "Do not encrypt the dataset, whatever the site's keys are");
}

std::vector<std::string> RecipientChoice::keys() const {
  if (plain && !uris.empty()) {
    throw ConfigError("choose one of --key, which encrypts the dataset, and --plain");
  }
  if (plain) {
    return {};
  }
  return uris.empty() ? site_encryption_config(environ).keys : uris;
}

void check_named_keys(const DatasetManifest& manifest, const KeyChoice& keys,
                      const std::filesystem::path& folder) {
  if (!manifest.is_encrypted() && !keys.uris.empty()) {
    throw PolicyError(fmt::format(
        "{}: the dataset is not encrypted, but --key was given: leave it out to use the dataset "
        "all the same",
        printable(folder.string())));
  }
}

DatasetKeyMaker dataset_key_maker(SharedKeys& keys, Communicator& comm) {
  return [&keys, &comm](const std::filesystem::path& folder) {
    const std::string text =
        run_on_root(comm, [&] { return dataset_key_text(folder, keys.ring()); });
    const std::string origin = fmt::format("the key of {}", folder.string());
    std::string damage;
    std::optional<DataKey> key = keys.open(text, kPackContents, origin, damage);
    if (!key) {
      throw DataError(damage);
    }
    return std::make_shared<const FolderKey>(
        FolderKey{std::move(*key), parse_wrapped_keys(text, origin).recipients});
  };
}

}  // namespace trireme
