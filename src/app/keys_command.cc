#include "src/app/keys_command.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "io/checkpoint/names.h"
#include "io/checkpoint/store.h"
#include "src/app/command/standard_output.h"
#include "src/app/key_choice.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/keys/key_file.h"
#include "src/keys/key_ring.h"
#include "src/keys/key_uri.h"
#include "src/keys/token_key.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr std::int64_t kMostKeysBytes = std::int64_t{16} << 20;

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
};

// The wrapped key of one encrypted step.
struct EncryptedStep {
  fs::path folder;
  std::string seal;  // of its manifest
  WrappedKeys wrapped;
  fs::path file() const { return folder / kKeysFileName; }
};

EncryptedStep read_step(const StepFolder& step) {
  check_readable(step);
  if (!step.manifest) {
    throw DataError(step.problem);
  }
  if (step.manifest->data_key.empty()) {
    throw ConfigError(fmt::format("{} is not encrypted", step.path.string()));
  }
  const fs::path file = step.path / kKeysFileName;
  return {step.path, step.manifest->seal,
          parse_wrapped_keys(read_file(file, kMostKeysBytes), file.string())};
}

// Returns the step that DIR names, or all encrypted steps of a checkpoint folder.
std::vector<EncryptedStep> steps_of(const KeysOptions& options) {
  const fs::path given = options.folder;
  const fs::path folder = given.has_filename() ? given : given.parent_path();
  if (is_step_folder(folder) && fs::exists(folder)) {
    return {read_step(inspect_step(folder))};
  }
  const std::vector<StepFolder> all = list_steps(folder);
  if (all.empty()) {
    throw no_checkpoint_in(folder);
  }
  std::vector<EncryptedStep> encrypted;
  for (const StepFolder& step : all) {
    if (step.manifest && step.manifest->data_key.empty()) {
      continue;
    }
    encrypted.push_back(read_step(step));
  }
  if (encrypted.empty()) {
    throw ConfigError(fmt::format("no checkpoint in {} is encrypted", folder.string()));
  }
  return encrypted;
}

void create(const KeysOptions& options) {
  if (options.name.find_first_of("\r\n") != std::string::npos) {
    throw ConfigError("--name must be one line");
  }
  if (options.file.empty() == options.token.empty()) {
    throw ConfigError("choose one of --out FILE and --pkcs11 URI");
  }
  if (!options.token.empty()) {
    fmt::print("key: {}\n", printable(create_token_key(options.token)->title()));
    return;
  }
  KeyFile::create(options.file, options.name);
  fmt::print("key:      {}\nidentity: {}\n", printable(options.file),
             KeyFile::load(options.file)->id());
}

ordered_json to_json(const EncryptedStep& step) {
  ordered_json recipients = ordered_json::array();
  for (const Recipient& recipient : step.wrapped.recipients) {
    recipients.push_back(
        {{"kind", recipient.kind}, {"key", recipient.key}, {"name", recipient.name}});
  }
  return {{"path", step.folder.string()},
          {"data_key", step.wrapped.data_key},
          {"recipients", std::move(recipients)}};
}

void list(const KeysOptions& options) {
  ordered_json steps = ordered_json::array();
  for (const EncryptedStep& step : steps_of(options)) {
    steps.push_back(to_json(step));
    if (options.json) {
      continue;
    }
    fmt::print("{}\n", printable(step.folder.string()));
    for (const Recipient& recipient : step.wrapped.recipients) {
      fmt::print("  {:<10} {}  {}\n", printable(recipient.kind), printable(recipient.key),
                 printable(recipient.name));
    }
    if (step.wrapped.recipients.empty()) {
      fmt::print("  nobody: the key was destroyed\n");
    }
  }
  if (options.json) {
    print_json({{"schema", 1}, {"checkpoints", std::move(steps)}});
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

// Changes the recipients of each step, whose data key a key of the command line opens. All steps
// are opened before the first one is changed, so that a missing key changes nothing.
void change(const KeysOptions& options,
            const std::function<void(std::vector<Recipient>&, const DataKey&)>& work) {
  const KeyRing ring(options.keys.options().uris);
  std::vector<EncryptedStep> steps = steps_of(options);
  for (EncryptedStep& step : steps) {
    const std::string origin = step.file().string();
    const DataKey key = ring.unwrap(step.wrapped, origin);
    check_wrapped_keys(step.wrapped, key, step.seal, origin);
    work(step.wrapped.recipients, key);
    if (step.wrapped.recipients.empty()) {
      throw PolicyError(fmt::format(
          "{}: this would remove the last recipient, and nobody could read the checkpoint any "
          "more: if you want that, use `trireme keys destroy`",
          origin));
    }
    step.wrapped.sign(key);
  }
  for (const EncryptedStep& step : steps) {
    write_file_durably(step.file(), to_text(step.wrapped));
    fmt::print("{}: {}\n", printable(step.folder.string()), recipients_text(step.wrapped));
  }
}

void add(const KeysOptions& options) {
  const KeyRing added(options.to);
  change(options, [&](std::vector<Recipient>& recipients, const DataKey& key) {
    add_recipients(recipients, added.wrap(key, "").recipients);
  });
}

void rotate(const KeysOptions& options) {
  const KeyRing next(options.to);
  change(options, [&](std::vector<Recipient>& recipients, const DataKey& key) {
    recipients = next.wrap(key, "").recipients;
  });
}

void remove(const KeysOptions& options) {
  change(options, [&](std::vector<Recipient>& recipients, const DataKey&) {
    for (const std::string& wanted : options.recipients) {
      const auto found = std::find_if(recipients.begin(), recipients.end(),
                                      [&](const Recipient& known) { return known.key == wanted; });
      if (found == recipients.end()) {
        throw NotFound(
            fmt::format("{}: no recipient has the identity '{}' (`trireme keys list` prints them)",
                        options.folder, wanted));
      }
      recipients.erase(found);
    }
  });
}

// Returns whether a person types the word, or the command line has it.
bool is_confirmed(const std::string& word, std::size_t time, const KeysOptions& options) {
  if (options.confirmed.size() > time) {
    return options.confirmed[time] == word;
  }
  if (::isatty(STDIN_FILENO) == 0) {
    return false;
  }
  fmt::print(stderr, "{} '{}' to {}: ", time == 0 ? "Type" : "Type again", word,
             time == 0 ? "destroy its keys" : "confirm that nobody shall ever read it");
  std::string line;
  std::getline(std::cin, line);
  return line == word;
}

// Overwrites the file in place before it is replaced. What the disk or the file system keep of the
// old blocks is beyond this program; docs/encryption.md says so.
void shred(const EncryptedStep& step) {
  WrappedKeys nobody = step.wrapped;
  nobody.recipients.clear();
  nobody.mac = std::string(64, '0');
  const std::int64_t bytes = static_cast<std::int64_t>(fs::file_size(step.file()));
  File file = File::open_to_update(step.file());
  const std::string zeros(static_cast<std::size_t>(bytes), '\0');
  file.write_at(0, zeros.data(), bytes);
  file.sync();
  file.close();
  write_file_durably(step.file(), to_text(nobody));
}

void destroy(const KeysOptions& options) {
  const std::vector<EncryptedStep> steps = steps_of(options);
  const fs::path given = options.folder;
  const std::string word = (given.has_filename() ? given : given.parent_path()).filename().string();
  fmt::print(stderr, "{} in {} will be unreadable for everyone, for ever.\n",
             counted(steps.size(), "checkpoint"), printable(options.folder));
  for (std::size_t time = 0; time < 2; ++time) {
    if (!is_confirmed(word, time, options)) {
      throw PolicyError(fmt::format(
          "nothing was destroyed: confirm twice, at a terminal or with --confirm {0} --confirm {0}",
          printable(word)));
    }
  }
  for (const EncryptedStep& step : steps) {
    shred(step);
    fmt::print("{}: its key was destroyed\n", printable(step.folder.string()));
  }
}

CommandLine& add_subcommand(CommandLine& keys, const char* name, const char* what,
                            const std::shared_ptr<KeysOptions>& options) {
  CommandLine& command = keys.add_command(name, what);
  command
      .add_option("DIR", options->folder,
                  "An encrypted checkpoint, or a folder of checkpoints: then all in it")
      .required();
  return command;
}

void add_create(CommandLine& keys) {
  CommandLine& command = keys.add_command("create", "Make a key that encrypts checkpoints");
  const auto options = std::make_shared<KeysOptions>();
  command.add_option("--out", options->file, "The new key file, which only you can read")
      .type_name("FILE");
  command
      .add_option("--pkcs11", options->token,
                  "Instead: where a token shall generate a key that nobody can read out of it")
      .type_name("URI");
  command.add_option("--name", options->name, "What `keys list` calls the key");
  command.footer(
      "Example:\n"
      "  trireme keys create --out /etc/trireme/site.key --name 'Site A, 2026'\n"
      "Keep a copy in another safe place: without the key, nobody can read the checkpoints.");
  command.callback([options] { create(*options); });
}

void add_list(CommandLine& keys) {
  const auto options = std::make_shared<KeysOptions>();
  CommandLine& command = add_subcommand(keys, "list", "Print who can open checkpoints", options);
  command.add_flag("--json", options->json, "Print JSON");
  command.footer("Example:\n  trireme keys list runs/first/checkpoints");
  command.callback([options] { list(*options); });
}

void add_to_option(CommandLine& command, const std::shared_ptr<KeysOptions>& options,
                   const char* what) {
  options->keys.add_to(command);
  command.add_option("--to", options->to, what).required().one_value_per_use().type_name("URI");
}

void add_changes(CommandLine& keys) {
  const auto adding = std::make_shared<KeysOptions>();
  CommandLine& add_one = add_subcommand(keys, "add", "Let another key open checkpoints", adding);
  add_to_option(add_one, adding, "A key that shall open them as well; can be repeated");
  add_one.footer(
      "Example:\n"
      "  trireme keys add runs/first/checkpoints --key file:site.key --to file:partner.key");
  add_one.callback([adding] { add(*adding); });

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
      "  trireme keys remove runs/first/checkpoints --key file:site.key --recipient 9b23...\n"
      "Whoever has an older copy of keys.json and the removed key can still read this data.");
  remove_one.callback([removing] { remove(*removing); });

  const auto rotating = std::make_shared<KeysOptions>();
  CommandLine& rotate_all =
      add_subcommand(keys, "rotate", "Replace all recipients by others", rotating);
  add_to_option(rotate_all, rotating, "A new recipient; can be repeated");
  rotate_all.footer(
      "Example:\n"
      "  trireme keys rotate runs/first/checkpoints --key file:2025.key --to file:2026.key\n"
      "Only keys.json is rewritten, not the data.");
  rotate_all.callback([rotating] { rotate(*rotating); });
}

void add_destroy(CommandLine& keys) {
  const auto options = std::make_shared<KeysOptions>();
  CommandLine& command =
      add_subcommand(keys, "destroy", "Make checkpoints unreadable for everyone", options);
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
  command.callback([options] { destroy(*options); });
}

}  // namespace

void add_keys_command(CommandLine& app) {
  CommandLine& keys =
      app.add_command("keys", "Make keys, and say who can open encrypted checkpoints");
  keys.require_command();
  keys.footer(
      "Examples:\n"
      "  trireme keys create --out /etc/trireme/site.key\n"
      "  trireme keys list runs/first/checkpoints");
  add_create(keys);
  add_list(keys);
  add_changes(keys);
  add_destroy(keys);
}

}  // namespace trireme
