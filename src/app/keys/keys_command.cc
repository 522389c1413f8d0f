#include "src/app/keys/keys_command.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/store.h"
#include "src/app/access/confirmation.h"
#include "src/app/access/folder_access.h"
#include "src/app/access/key_choice.h"
#include "src/app/command/standard_output.h"
#include "src/app/keys/keys_changes.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/keys/key_file.h"
#include "src/keys/key_ring.h"
#include "src/keys/key_uri.h"
#include "src/keys/log_starts.h"
#include "src/keys/revoked_keys.h"
#include "src/keys/token_key.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct KeysOptions {
  std::string folder;
  std::string file;
  std::string name;
  std::string token;
  std::vector<std::string> to;
  std::vector<std::string> recipients;
  std::vector<std::string> confirmed;
  KeyChoice keys;
  bool json = false;
  bool all = false;
};

void create(const KeysOptions& options) {
  if (options.name.find_first_of("\r\n") != std::string::npos) {
    throw ConfigError("--name must be one line");
  }
  if (options.file.empty() == options.token.empty()) {
    throw ConfigError("choose one of --out FILE and --pkcs11 URI");
  }
  if (!options.token.empty()) {
    if (!options.name.empty()) {
      throw ConfigError("--name is for key files; a token calls its key by the URI's object");
    }
    fmt::print("key: {}\n", printable(create_token_key(options.token)->title()));
    return;
  }
  KeyFile::create(options.file, options.name);
  fmt::print("key:      {}\nidentity: {}\n", printable(options.file),
             KeyFile::load(options.file)->id());
}

ordered_json to_json(const EncryptedFolder& found, const std::vector<RevokedKey>& revoked) {
  ordered_json recipients = ordered_json::array();
  for (const Recipient& recipient : found.wrapped.recipients) {
    recipients.push_back({{"kind", recipient.kind},
                          {"key", recipient.key},
                          {"name", recipient.name},
                          {"revoked", find_revoked(revoked, recipient.key) != nullptr}});
  }
  return {{"path", found.folder.string()},
          {"data_key", found.wrapped.data_key},
          {"recipients", std::move(recipients)}};
}

void print_folder(const EncryptedFolder& found, const std::vector<RevokedKey>& revoked) {
  fmt::print("{}\n", printable(found.folder.string()));
  for (const Recipient& recipient : found.wrapped.recipients) {
    const RevokedKey* const taken = find_revoked(revoked, recipient.key);
    fmt::print("  {:<10} {}  {}{}\n", printable(recipient.kind), printable(recipient.key),
               printable(recipient.name), taken == nullptr ? "" : " " + text_of_revoked(*taken));
  }
  if (found.is_destroyed()) {
    fmt::print("  nobody: the key was destroyed\n");
  }
}

void list(const KeysOptions& options) {
  const KeyRing ring(options.keys.uris);
  const std::vector<RevokedKey> revoked = site_revoked_keys();
  ordered_json checkpoints = ordered_json::array();
  ordered_json datasets = ordered_json::array();
  ordered_json logs = ordered_json::array();
  for (const EncryptedFolder& found : encrypted_folders(named_folder(options.folder))) {
    if (!ring.empty() && !found.is_destroyed()) {
      const std::string origin = found.file().string();
      check_wrapped_keys(found.wrapped, unwrap_to_change(ring, found.wrapped, origin), found.seal,
                         origin);
    }
    (found.kind == EncryptedKind::dataset ? datasets
     : found.kind == EncryptedKind::logs  ? logs
                                          : checkpoints)
        .push_back(to_json(found, revoked));
    if (!options.json) {
      print_folder(found, revoked);
    }
  }
  if (options.json) {
    print_json({{"schema", 1},
                {"checked", !ring.empty()},
                {"checkpoints", std::move(checkpoints)},
                {"datasets", std::move(datasets)},
                {"logs", std::move(logs)}});
  } else if (ring.empty()) {
    fmt::print("This is what the files say. With --key, it is also checked.\n");
  }
}

bool is_same(const Recipient& a, const Recipient& b) { return a.kind == b.kind && a.key == b.key; }

void add_recipients(std::vector<Recipient>& to, const std::vector<Recipient>& more) {
  for (const Recipient& recipient : more) {
    const auto same = std::find_if(
        to.begin(), to.end(), [&](const Recipient& known) { return is_same(known, recipient); });
    if (same == to.end()) {
      to.push_back(recipient);
    } else {
      *same = recipient;
    }
  }
}

void add(const KeysOptions& options) {
  const KeyRing added(options.to);
  change_recipients(named_folder(options.folder), options.keys,
                    [&](std::vector<Recipient>& recipients, const DataKey& key) {
                      add_recipients(recipients, added.wrap(key, "").recipients);
                      return true;
                    });
}

// Returns the recipients that neither a key of `opening` opens nor is among those that come next.
std::vector<Recipient> others_of(const std::vector<Recipient>& recipients,
                                 const std::vector<Recipient>& next, const KeyRing& opening,
                                 const DataKey& key) {
  std::vector<Recipient> others;
  for (const Recipient& recipient : recipients) {
    const bool stays = std::any_of(next.begin(), next.end(),
                                   [&](const Recipient& each) { return is_same(each, recipient); });
    const bool is_used = std::any_of(
        opening.keys().begin(), opening.keys().end(),
        [&](const auto& wrapping) { return wrapping->unwrap(recipient, key.id()).has_value(); });
    if (!stays && !is_used) {
      others.push_back(recipient);
    }
  }
  return others;
}

void rotate(const KeysOptions& options) {
  const KeyRing next(options.to);
  const KeyRing opening(options.keys.options().uris);
  change_recipients(named_folder(options.folder), options.keys,
                    [&](std::vector<Recipient>& recipients, const DataKey& key) {
                      std::vector<Recipient> wrapped = next.wrap(key, "").recipients;
                      const std::vector<Recipient> others =
                          options.all ? std::vector<Recipient>()
                                      : others_of(recipients, wrapped, opening, key);
                      if (!others.empty()) {
                        throw ConfigError(fmt::format(
                            "nothing was changed, because {} could no longer open what is in {}: "
                            "keep a key with another --to, replace one key with `trireme keys "
                            "add` and `trireme keys remove`, or remove all with --all",
                            text_of_recipients(others), options.folder));
                      }
                      recipients = std::move(wrapped);
                      return true;
                    });
}

void remove(const KeysOptions& options) {
  std::vector<std::string> missing = options.recipients;
  change_recipients(named_folder(options.folder), options.keys,
                    [&](std::vector<Recipient>& recipients, const DataKey&) {
                      const std::size_t before = recipients.size();
                      for (const std::string& wanted : options.recipients) {
                        const std::size_t count = recipients.size();
                        std::erase_if(recipients, [&](const Recipient& recipient) {
                          return recipient.key == wanted;
                        });
                        if (recipients.size() < count) {
                          std::erase(missing, wanted);
                        }
                      }
                      return recipients.size() < before;
                    });
  if (!missing.empty()) {
    throw NotFound(
        fmt::format("nothing in {} has a recipient with the identity '{}' (`trireme keys "
                    "list` prints them)",
                    options.folder, fmt::join(missing, "', '")));
  }
}

void destroy(const KeysOptions& options) {
  const std::filesystem::path folder = named_folder(options.folder);
  if (!std::filesystem::is_directory(folder)) {
    throw no_checkpoint_in(folder);
  }
  check_destroyable(folder);
  const std::string word = folder.filename().string();
  fmt::print(stderr, "What the keys in {} encrypt will be unreadable for everyone, for ever.\n",
             printable(folder.string()));
  confirm_twice(
      word, options.confirmed,
      {"destroy its keys", "confirm that nobody shall ever read it", "nothing was destroyed"});
  destroy_keys(folder);
}

CommandLine& add_subcommand(CommandLine& keys, const char* name, const char* what,
                            const std::shared_ptr<KeysOptions>& options) {
  CommandLine& command = keys.add_command(name, what);
  command
      .add_option("DIR", options->folder,
                  "An encrypted checkpoint or dataset, or a folder of some: then all in it; or "
                  "log-keys in the folder of a run: then its logs")
      .required();
  return command;
}

void add_create(CommandLine& keys) {
  CommandLine& command =
      keys.add_command("create", "Make a key that encrypts checkpoints and datasets");
  const auto options = std::make_shared<KeysOptions>();
  command.add_option("--out", options->file, "The new key file, which only you can read")
      .written()
      .type_name("FILE");
  command
      .add_option("--pkcs11", options->token,
                  "Instead: where a token shall generate a key that nobody can read out of it")
      .type_name("URI");
  command.add_option("--name", options->name, "What `keys list` calls the key");
  command.footer(
      "Example:\n"
      "  trireme keys create --out /etc/trireme/site.key --name 'Site A, 2026'\n"
      "Keep a copy in another safe place: without the key, nobody can read what is encrypted.");
  command.callback([options] { create(*options); });
}

void add_list(CommandLine& keys) {
  const auto options = std::make_shared<KeysOptions>();
  CommandLine& command =
      add_subcommand(keys, "list", "Print who can open checkpoints and datasets", options);
  options->keys.add_to(command);
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example:\n  trireme keys list runs/first/checkpoints");
  command.callback([options] { list(*options); });
}

void add_to_option(CommandLine& command, const std::shared_ptr<KeysOptions>& options,
                   const char* what) {
  options->keys.add_to(command);
  command.add_option("--to", options->to, what).required().one_value_per_use().type_name("URI");
}

// Throws PolicyError if the policy forbids changing the keys of what lies in a folder.
void check_keys_access(const Access& access, const fs::path& folder) {
  const fs::path place = access_folder(folder);
  check_folder_access(access, Deed::keys, place);
  if (place == folder) {
    return;
  }
  const LogStarts starts = list_log_starts(place);
  for (const LogStart& start : starts.all) {
    check_logs_access(access, Deed::keys, folder, start.label);
  }
  if (starts.all.empty() || !starts.damage.empty()) {
    check_logs_access(access, Deed::keys, folder, "");
  }
}

void add_changes(CommandLine& keys, const AccessSource& access) {
  const auto adding = std::make_shared<KeysOptions>();
  CommandLine& add_one =
      add_subcommand(keys, "add", "Let another key open checkpoints or datasets", adding);
  add_to_option(add_one, adding, "A key that shall open them as well; can be repeated");
  add_one.footer(
      "Example:\n"
      "  trireme keys add runs/first/checkpoints --key file:a.key --to file:b.key");
  add_one.callback([adding, access] {
    check_keys_access(access(), named_folder(adding->folder));
    add(*adding);
  });

  const auto removing = std::make_shared<KeysOptions>();
  CommandLine& remove_one =
      add_subcommand(keys, "remove", "Take a key out of the recipients", removing);
  removing->keys.add_to(remove_one);
  remove_one
      .add_option("--recipient", removing->recipients,
                  "Identity of a key, as `keys list` prints it; can be repeated")
      .required()
      .one_value_per_use()
      .type_name("ID");
  remove_one.footer(
      "Example:\n"
      "  trireme keys remove runs/first/checkpoints --key file:a.key \\\n"
      "    --recipient 9b23c1a602ba17944091e8a0c0536d77\n"
      "Whoever has an older copy of keys.json and the removed key can still read this data.");
  remove_one.callback([removing, access] {
    check_keys_access(access(), named_folder(removing->folder));
    remove(*removing);
  });

  const auto rotating = std::make_shared<KeysOptions>();
  CommandLine& rotate_all =
      add_subcommand(keys, "rotate", "Replace the keys that open it by others", rotating);
  add_to_option(rotate_all, rotating, "A new recipient; can be repeated");
  rotate_all.add_flag("--all", rotating->all,
                      "Also remove recipients other than the keys given with --key and --to");
  rotate_all.footer(
      "Example:\n"
      "  trireme keys rotate runs/first/checkpoints --key file:old.key \\\n"
      "    --to file:new.key\n"
      "Only keys.json is rewritten, not the data. If others can open it as well, they have to be "
      "kept with --to or removed with --all.");
  rotate_all.callback([rotating, access] {
    check_keys_access(access(), named_folder(rotating->folder));
    rotate(*rotating);
  });
}

void add_destroy(CommandLine& keys, const AccessSource& access) {
  const auto options = std::make_shared<KeysOptions>();
  CommandLine& command = add_subcommand(
      keys, "destroy", "Make checkpoints or datasets unreadable for everyone", options);
  command
      .add_option("--confirm", options->confirmed,
                  "The last part of DIR; given twice, it replaces the two questions")
      .one_value_per_use()
      .type_name("NAME");
  command.footer(
      "Example:\n"
      "  trireme keys destroy runs/first/checkpoints\n"
      "Copies of keys.json elsewhere, in backups and snapshots, are not found: to be sure, "
      "destroy the keys of all recipients as well.");
  command.callback([options, access] {
    check_keys_access(access(), named_folder(options->folder));
    destroy(*options);
  });
}

}  // namespace

void add_keys_command(CommandLine& app, const AccessSource& access) {
  CommandLine& keys =
      app.add_command("keys", "Make keys, and say who can open encrypted checkpoints and datasets");
  keys.require_command();
  keys.footer(
      "Examples:\n"
      "  trireme keys create --out /etc/trireme/site.key\n"
      "  trireme keys list runs/first/checkpoints\n"
      "  trireme keys rotate /data/c4 --key file:old.key --to file:new.key");
  add_create(keys);
  add_list(keys);
  add_changes(keys, access);
  add_destroy(keys, access);
}

}  // namespace trireme
