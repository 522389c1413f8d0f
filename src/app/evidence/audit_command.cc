#include "src/app/evidence/audit_command.h"

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/checkpoint/workers.h"
#include "src/app/command/number_check.h"
#include "src/app/command/standard_output.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/evidence/audit_check.h"
#include "src/evidence/audit_reader.h"
#include "src/evidence/digest_list.h"
#include "src/keys/token_signer.h"

namespace trireme {
namespace {

using nlohmann::ordered_json;

constexpr const char* kEd25519Word = "ed25519";
constexpr const char* kEcdsaWord = "ecdsa";

struct AuditOptions {
  std::string file;
  std::string key;
  std::string name;
  std::string pkcs11;
  std::string algorithm;
  std::string trust;
  std::vector<std::string> heads;
  std::string event;
  std::int64_t last = 0;
  bool json = false;
};

void make_key(const AuditOptions& options) {
  const std::filesystem::path public_file = options.file + ".pub";
  if (std::filesystem::exists(std::filesystem::symlink_status(public_file))) {
    throw PolicyError(fmt::format("{} exists: a key is never overwritten; choose another name",
                                  public_file.string()));
  }
  if (options.name.find_first_of("\r\n") != std::string::npos) {
    throw ConfigError("--name must be one line");
  }
  const bool in_token = !options.pkcs11.empty();
  if (in_token && options.algorithm == kEd25519Word) {
    throw ConfigError("--algorithm ed25519: keys in tokens are always of ECDSA");
  }
  const PublicKey::Kind kind =
      options.algorithm == kEcdsaWord ? PublicKey::Kind::ecdsa_p256 : PublicKey::Kind::ed25519;
  const SigningKey key =
      in_token ? SigningKey(create_token_signer(options.pkcs11)) : SigningKey::generate(kind);
  if (!in_token) {
    key.save(options.file);
  }
  const std::string title = options.name.empty() ? "trireme key" : options.name;
  write_named_file(public_file, fmt::format("# {}\n{}", title, key.public_key().to_pem()));
  fmt::print("private key: {}\npublic key:  {}\nidentity:    {}\n",
             printable(in_token ? options.pkcs11 : options.file), printable(public_file.string()),
             key.public_key().id());
}

void sign(const AuditOptions& options) {
  const SigningKey key = SigningKey::load(options.key);
  sign_digest_list(options.file, key);
  fmt::print("{}{}: signed by key {}\n", printable(options.file), kSignatureSuffix,
             short_id(key.public_key().id()));
}

std::string details_text(const nlohmann::json& details) {
  std::string text;
  for (const auto& [name, value] : details.items()) {
    text += fmt::format(
        " {}={}", printable(name),
        value.is_string() ? printable(value.get<std::string>()) : printable(value.dump()));
  }
  return text;
}

// Returns null for what is no line of a log, such as JSON that is nested too deeply.
nlohmann::json object_of(std::string_view line) {
  try {
    return parse_json(line);
  } catch (const DataError&) {
    return nullptr;
  }
}

// Prints one line of a log. Lines that cannot be read are for `audit verify` to complain about.
void show_line(std::string_view line, std::int64_t number) {
  const nlohmann::json object = object_of(line);
  if (!object.is_object()) {
    fmt::print("{:>6}  (no line of an audit log)\n", number);
    return;
  }
  const auto text = [&](const char* name) {
    return object.contains(name) && object[name].is_string()
               ? printable(object[name].get<std::string>())
               : std::string("?");
  };
  fmt::print("{:>6}  {}  {:<12} {}{}\n", number, text("time"), text("host"), text("event"),
             object.contains("details") ? details_text(object["details"]) : "");
}

// Returns whether the line's event begins with `event`, or, if `event` is empty, whether the line
// is not a signed head. Parses the line only if its raw bytes cannot decide.
bool is_wanted(std::string_view line, const std::string& event) {
  if (event.empty() && begins_as_head(line)) {
    return false;
  }
  const std::string_view sought = event.empty() ? kHeadEvent : std::string_view(event);
  const bool may_match = line.find(sought) != std::string_view::npos ||
                         line.find('\\') != std::string_view::npos;  // as in "\u0068ead"
  if (!may_match) {
    return event.empty();
  }
  const nlohmann::json object = object_of(line);
  const std::string found =
      object.is_object() && object.contains("event") && object["event"].is_string()
          ? object["event"].get<std::string>()
          : "";
  return event.empty() ? found != kHeadEvent : found.starts_with(event);
}

void show(const AuditOptions& options) {
  const auto print = [&](std::string_view line, std::int64_t number) {
    if (options.json) {
      fmt::print("{}\n", printable(line));
    } else {
      show_line(line, number);
    }
  };
  const File file = File::open_to_read(options.file);
  AuditReader reader(file, 0, file.size());
  std::deque<std::pair<std::int64_t, std::string>> last;
  std::int64_t number = 0;
  while (const std::optional<AuditReader::Line> line = reader.next()) {
    ++number;
    if (!is_wanted(line->text, options.event)) {
      continue;
    }
    if (options.last == 0) {
      print(line->text, number);
    } else {
      last.emplace_back(number, line->text);
      if (std::ssize(last) > options.last) {
        last.pop_front();
      }
    }
  }
  for (const auto& [line_number, text] : last) {
    print(text, line_number);
  }
}

ordered_json to_json(const AuditCheck& check, const std::string& lack) {
  ordered_json faults = ordered_json::array();
  for (const AuditFault& fault : check.faults) {
    faults.push_back({{"line", fault.line}, {"what", fault.what}});
  }
  return {{"schema", 1},
          {"lines", check.lines},
          {"head", to_text(check.head)},
          {"signed_lines", check.signed_lines},
          {"signer", check.signer},
          {"lack", lack},
          {"faults", std::move(faults)},
          {"faults_not_listed", check.faults_not_listed},
          {"notes", check.notes}};
}

void print_check(const AuditOptions& options, const AuditCheck& check, const std::string& lack) {
  for (const AuditFault& fault : check.faults) {
    fmt::print("{}: line {} {}\n", printable(options.file), fault.line, printable(fault.what));
  }
  if (check.faults_not_listed > 0) {
    fmt::print("... and {} more\n", counted(check.faults_not_listed, "fault"));
  }
  for (const std::string& note : check.notes) {
    fmt::print("note: {}\n", printable(note));
  }
  if (check.faults.empty()) {
    fmt::print("{}: {}, each continues the one before it\n", printable(options.file),
               counted(check.lines, "line"));
  }
  if (check.signed_lines > 0) {
    fmt::print("signed up to line {} by {}\n", check.signed_lines, printable(check.signer));
  }
  if (!lack.empty()) {
    fmt::print("not trusted: {}\n", lack);
  }
  fmt::print("head: {}\n", to_text(check.head));
}

void verify(const AuditOptions& options, int& exit_code) {
  AuditDemands demands;
  demands.threads = available_processors();
  if (!options.trust.empty()) {
    demands.trusted = load_trusted_keys(options.trust);
  }
  for (const std::string& head : options.heads) {
    demands.heads.push_back(parse_audit_head(head));
  }
  const AuditCheck check = check_audit_log(options.file, demands);
  if (check.lines == 0) {
    throw DataError(fmt::format("{}: the audit log is empty", options.file));
  }
  const std::string lack = lack_of_trust(check, demands);
  if (options.json) {
    print_json(to_json(check, lack));
  } else {
    print_check(options, check, lack);
  }
  if (!check.faults.empty()) {
    exit_code = static_cast<int>(ExitCode::bad_data);
  } else if (!lack.empty()) {
    exit_code = static_cast<int>(ExitCode::refused);
  }
}

void add_keygen(CommandLine& audit) {
  CommandLine& command =
      audit.add_command("keygen", "Make a key that signs evidence, in a file or in a token");
  const auto options = std::make_shared<AuditOptions>();
  command
      .add_option("--out", options->file,
                  "The new private key; the public key gets the same name with .pub")
      .required()
      .written()
      .type_name("FILE");
  command
      .add_option(
          "--pkcs11", options->pkcs11,
          "Make the private key in this token, as pkcs11:token=NAME;object=NAME?...; FILE is "
          "not written then, and FILE.pub gets the public key")
      .type_name("URI");
  command
      .add_option("--algorithm", options->algorithm,
                  "What the key is for: ed25519 for evidence, ecdsa (on P-256) also for exported "
                  "models (default: ed25519, in a token ecdsa)")
      .check(one_of({kEd25519Word, kEcdsaWord}));
  command.add_option("--name", options->name, "What `verify` calls the key (default: trireme key)");
  command.footer(
      "Example:\n"
      "  trireme audit keygen --out /etc/trireme/evidence.key --name 'Site A, 2026'\n"
      "Only its owner can read the private key. Auditors need the public key only. A key in a "
      "token never leaves it: give its URI as audit.key, or to --key.");
  command.callback([options] { make_key(*options); });
}

void add_sign(CommandLine& audit) {
  CommandLine& command =
      audit.add_command("sign", "Sign a list of files with their digests, such as a release's");
  const auto options = std::make_shared<AuditOptions>();
  command
      .add_option("LIST", options->file,
                  "What sha256sum has printed about files beside the list; the signature becomes "
                  "LIST.sig")
      .required();
  command.add_option("--key", options->key, "The private key of `audit keygen`, or its URI")
      .required()
      .type_name("FILE");
  command.footer(
      "Example:\n"
      "  sha256sum model.tar.gz notes.txt > SHA256SUMS\n"
      "  trireme audit sign SHA256SUMS --key site.key\n"
      "  trireme verify SHA256SUMS --trust site.key.pub\n"
      "The signature is that of Ed25519 or ECDSA over the list, which openssl can check as well.");
  command.callback([options] { sign(*options); });
}

void add_show(CommandLine& audit) {
  CommandLine& command = audit.add_command("show", "Print the events of an audit log");
  const auto options = std::make_shared<AuditOptions>();
  command.add_option("LOG", options->file, "The audit log").required();
  command.add_option("--event", options->event,
                     "Only events whose names begin with TEXT (default: all except signatures)");
  command.add_option("-n,--last", options->last, "Only the last N of them; 0 = all")
      .check(integer_within(0, kMostCounted));
  command.add_flag("--json", options->json, "Print the lines as they are in the log");
  command.footer(
      "Example:\n"
      "  trireme audit show /var/log/trireme/audit.jsonl --event checkpoint -n 10\n"
      "This does not check the log: see 'trireme audit verify'.");
  command.callback([options] { show(*options); });
}

void add_verify(CommandLine& audit, int& exit_code) {
  CommandLine& command =
      audit.add_command("verify", "Find lines of an audit log that were changed, cut or added");
  const auto options = std::make_shared<AuditOptions>();
  command.add_option("LOG", options->file, "The audit log").required();
  command
      .add_option("--trust", options->trust,
                  "Public keys, one of which must have signed the whole log")
      .type_name("FILE");
  command
      .add_option("--head", options->heads,
                  "A head that an earlier `verify` printed: the log must still contain it; can be "
                  "repeated")
      .one_value_per_use()
      .type_name("NUMBER:SHA256");
  command.add_flag("--json", options->json, "Print JSON");
  command.footer(
      "Example:\n"
      "  trireme audit verify /var/log/trireme/audit.jsonl --trust trust.pem\n"
      "Exits with 65 if the log was changed, and with 77 if --trust is given and a signature is "
      "missing or of another key. A log that was cut after a signature looks whole: keep the head "
      "that this command prints elsewhere, and pass it with --head next time.");
  command.callback([options, &exit_code] { verify(*options, exit_code); });
}

}  // namespace

void add_audit_command(CommandLine& app, int& exit_code) {
  CommandLine& audit =
      app.add_command("audit", "Make keys for evidence, sign files, and check audit logs");
  audit.require_command();
  audit.footer(
      "Examples:\n"
      "  trireme audit keygen --out /etc/trireme/evidence.key\n"
      "  trireme audit verify /var/log/trireme/audit.jsonl --trust trust.pem");
  add_keygen(audit);
  add_sign(audit);
  add_show(audit);
  add_verify(audit, exit_code);
}

}  // namespace trireme
