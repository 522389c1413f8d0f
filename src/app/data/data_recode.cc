#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/data/recode.h"
#include "src/app/access/folder_access.h"
#include "src/app/access/key_choice.h"
#include "src/app/command/standard_output.h"
#include "src/app/data/byte_progress.h"
#include "src/app/data/data_keys.h"
#include "src/app/data/data_subcommands.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

struct RecodeArguments {
  std::string folder;
  KeyChoice keys;
  bool json = false;
};

void run_recode(const RecodeArguments& arguments, bool encrypts, Communicator& comm,
                const Access& access) {
  const RankGroup ranks = rank_group(comm);
  const std::vector<std::string> uris = arguments.keys.options().uris;
  if (encrypts && uris.empty()) {
    throw ConfigError(
        "no key was given: name one with --key, such as file:/etc/trireme/site.key, or in "
        "encryption.keys of the site");
  }
  // Decrypting removes the protection of the keys, so it needs the right to export.
  check_dataset_access(access, encrypts ? Deed::write : Deed::export_plain, arguments.folder);
  SharedKeys keys(comm, uris);
  const RecodeReport report = recode({arguments.folder, encrypts, dataset_key_maker(keys, comm),
                                      ByteProgress(encrypts ? "encrypt" : "decrypt", ranks.rank)},
                                     ranks);
  if (ranks.rank != 0) {
    return;
  }
  if (arguments.json) {
    print_json({{"schema", 1},
                {"folder", arguments.folder},
                {"encrypted", encrypts},
                {"was_done", report.was_done},
                {"shards", report.shards},
                {"bytes", report.bytes},
                {"digest", report.digest}});
    return;
  }
  fmt::print("{}: {}{}, {}, {}\n  {}\n", printable(arguments.folder),
             report.was_done ? "already " : "", encrypts ? "encrypted" : "not encrypted",
             counted(report.shards, "shard"), format_bytes(report.bytes), report.digest);
}

void add_recode(CommandLine& data, const CommunicatorAccess& communicator,
                const AccessSource& access, bool encrypts) {
  CommandLine& command =
      encrypts ? data.add_command("encrypt", "Encrypt a dataset in place")
               : data.add_command("decrypt", "Write an encrypted dataset in plain, in place");
  const auto arguments = std::make_shared<RecodeArguments>();
  command.add_option("DIR", arguments->folder, "The dataset's folder").required();
  if (encrypts) {
    command
        .add_option("--key", arguments->keys.uris,
                    "Encrypt it for this key, such as file:/etc/trireme/site.key; can be repeated "
                    "(default: encryption.keys of the site)")
        .one_value_per_use()
        .type_name("URI");
  } else {
    arguments->keys.add_to(command);
  }
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(
      encrypts ? "Example:\n"
                 "  trireme data encrypt /data/c4 --key file:/etc/trireme/site.key\n"
                 "The disk needs room for a second copy until the command ends. No run may read "
                 "the dataset meanwhile. Disks may keep blocks of the plain files that were "
                 "removed: what must never lie there in plain has to be packed encrypted."
               : "Example:\n  trireme data decrypt /data/c4 --key file:/etc/trireme/site.key");
  command.callback([arguments, communicator, access, encrypts] {
    run_recode(*arguments, encrypts, communicator(), access());
  });
}

}  // namespace

void add_data_encrypt(CommandLine& data, const CommunicatorAccess& communicator,
                      const AccessSource& access) {
  add_recode(data, communicator, access, true);
}

void add_data_decrypt(CommandLine& data, const CommunicatorAccess& communicator,
                      const AccessSource& access) {
  add_recode(data, communicator, access, false);
}

}  // namespace trireme
