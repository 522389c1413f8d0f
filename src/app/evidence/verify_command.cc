#include "src/app/evidence/verify_command.h"

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "io/checkpoint/workers.h"
#include "src/app/access/folder_access.h"
#include "src/app/command/standard_output.h"
#include "src/app/evidence/verify_page.h"
#include "src/keys/key_ring.h"
#include "src/keys/keyed_text_reader.h"
#include "src/lineage/certificate_check.h"
#include "src/lineage/lineage.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;

struct VerifyOptions {
  std::string what;
  std::string trust;
  std::vector<std::string> moved;
  std::vector<std::string> keys;
  std::vector<std::string> audit_logs;
  bool allow_missing = false;
  bool json = false;
};

std::pair<std::string, std::string> parse_moved(const std::string& text) {
  const std::size_t at = text.find('=');
  if (at == 0 || at == std::string::npos || at + 1 == text.size()) {
    throw ConfigError(fmt::format("--moved {}: expected OLD=NEW, two folders", printable(text)));
  }
  const auto without_slashes = [](std::string path) {
    path.resize(path.find_last_not_of('/') + 1);
    return path;  // "" for the root folder
  };
  return {without_slashes(text.substr(0, at)), without_slashes(text.substr(at + 1))};
}

void print_items(const Lineage& lineage) {
  constexpr int kDeepest = 32;  // a long chain of models would make the lines ever longer
  for (const LineageItem& item : lineage.items) {
    const int indentation = 2 * std::min(item.depth, kDeepest);
    fmt::print("{:<9} {:>{}}{} {}{}\n", word_of(item.code, item.is_unsigned), "", indentation,
               printable(item.role), printable(item.place),
               item.summary.empty() ? "" : ": " + printable(item.summary));
    for (const std::string& fact : item.facts) {
      fmt::print("{:>{}}{}\n", "", 14 + indentation, printable(fact));
    }
  }
  if (!lineage.faults.empty()) {
    fmt::print("\n");
  }
  for (const EvidenceFault& fault : lineage.faults) {
    fmt::print("{}: {}\n", word_of(fault.code, fault.is_unsigned), printable(fault.what));
  }
  for (const std::string& note : lineage.notes) {
    fmt::print("note: {}\n", printable(note));
  }
}

void print_end_of_certificate(const Lineage& lineage) {
  fmt::print("\n{}\n",
             lineage.faults.empty() ? "The certificate is as it was signed." : "NOT verified.");
  fmt::print(
      "It shows what the holder of the key states. That no copy exists elsewhere, nothing can "
      "show.\n");
}

void print_end(const Lineage& lineage, bool is_accepted) {
  fmt::print("\n{}\n", conclusion_of(lineage, is_accepted));
  fmt::print("{}\n", kWhatAPageShows);
}

ordered_json to_json(const Lineage& lineage, ExitCode code) {
  ordered_json items = ordered_json::array();
  for (const LineageItem& item : lineage.items) {
    items.push_back({{"depth", item.depth},
                     {"role", item.role},
                     {"place", item.place},
                     {"state", word_of(item.code, item.is_unsigned)},
                     {"summary", item.summary},
                     {"facts", item.facts}});
  }
  ordered_json faults = ordered_json::array();
  for (const EvidenceFault& fault : lineage.faults) {
    faults.push_back({{"state", word_of(fault.code, fault.is_unsigned)},
                      {"code", static_cast<int>(fault.code)},
                      {"what", fault.what}});
  }
  return {{"schema", 1},
          {"code", static_cast<int>(code)},
          {"files", lineage.files},
          {"bytes", lineage.bytes},
          {"items", std::move(items)},
          {"faults", std::move(faults)},
          {"notes", lineage.notes}};
}

void verify(const VerifyOptions& options, const Access& access, int& exit_code) {
  check_folder_access(access, Deed::read, options.what);
  LineageOptions walk{load_trusted_keys(options.trust), available_processors(), {}};
  const KeyRing ring(options.keys);
  const KeyedTextReader logs(ring);
  walk.logs = ring.empty() ? nullptr : &logs;
  for (const std::string& each : options.moved) {
    walk.moved.push_back(parse_moved(each));
  }
  walk.audit_logs.assign(options.audit_logs.begin(), options.audit_logs.end());
  const bool is_certificate = looks_like_certificate(options.what);
  if (is_certificate && !options.audit_logs.empty()) {
    throw ConfigError(
        "--audit: a certificate of deletion is not compared with audit logs; check them with "
        "`trireme audit verify`");
  }
  const Lineage lineage = is_certificate ? check_certificate(options.what, walk.trusted)
                                         : walk_lineage(options.what, std::move(walk));
  const bool is_accepted = options.allow_missing && lineage.code() == ExitCode::not_found;
  const ExitCode code = is_accepted ? ExitCode::ok : lineage.code();
  if (options.json) {
    print_json(to_json(lineage, code));
  } else {
    print_items(lineage);
    if (is_certificate) {
      print_end_of_certificate(lineage);
    } else {
      print_end(lineage, is_accepted);
    }
  }
  exit_code = static_cast<int>(code);
}

}  // namespace

void add_verify_command(CommandLine& app, const AccessSource& access, int& exit_code) {
  CommandLine& command =
      app.add_command("verify",
                      "Check a checkpoint, a run or a dataset, and what it was made from, an "
                      "exported model, a release, or a certificate of deletion, against "
                      "signatures");
  const auto options = std::make_shared<VerifyOptions>();
  command
      .add_option("WHAT", options->what,
                  "The folder of a run, of a checkpoint, of several checkpoints, of a dataset or "
                  "of an exported model; the list SHA256SUMS of a release, with its signature "
                  "beside it; or a "
                  "certificate of trireme erase")
      .required();
  command.add_option("--trust", options->trust, "Public keys whose signatures count")
      .required()
      .type_name("FILE");
  command
      .add_option("--moved", options->moved,
                  "What statements name below the folder OLD is now below NEW; can be repeated")
      .one_value_per_use()
      .type_name("OLD=NEW");
  command
      .add_option("--key", options->keys,
                  "A key that opens the encrypted logs of a run, such as "
                  "file:/etc/trireme/site.key; without one, only their form, sections and ends are "
                  "compared; can be repeated")
      .one_value_per_use()
      .type_name("URI");
  command
      .add_option("--audit", options->audit_logs,
                  "An audit log of the site: it is checked, and the steps and logs of the run are "
                  "compared with what it says was saved and deleted; can be repeated, the oldest "
                  "log first")
      .one_value_per_use()
      .type_name("LOG");
  command.add_flag("--allow-missing", options->allow_missing,
                   "Exit with 0 even if files that statements name are gone, or a dataset, base or "
                   "teacher is not signed, as long as everything else is as signed");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Examples:\n"
      "  trireme verify runs/first --trust trust.pem\n"
      "  trireme verify step-00000100 --trust trust.pem --moved /data=/mnt/archive/data\n"
      "  trireme verify runs/first --trust trust.pem --key file:/etc/trireme/site.key\n"
      "  trireme verify runs/first --trust trust.pem --audit /var/log/audit.jsonl\n"
      "  trireme verify models/first --trust trust.pem\n"
      "  trireme verify SHA256SUMS --trust trust.pem --allow-missing\n"
      "It follows the checkpoints from which runs were resumed, the datasets and the files from "
      "which they were packed, and needs no network. Exits with 65 if something was changed, "
      "added or removed, with 77 if something is not signed by a trusted key or may not be read, "
      "with 66 if something that a statement names is gone, and with 0 only if everything was "
      "checked.");
  command.callback([options, access, &exit_code] { verify(*options, access(), exit_code); });
}

}  // namespace trireme
