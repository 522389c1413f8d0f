#include <cmath>
#include <optional>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "io/data/dataset_keys.h"
#include "io/data/stage.h"
#include "io/data/unigram_entropy.h"
#include "io/data/verify.h"
#include "io/tokens/dataset_tokenizer.h"
#include "mpi/agreement.h"
#include "src/app/access/folder_access.h"
#include "src/app/access/key_choice.h"
#include "src/app/command/standard_output.h"
#include "src/app/data/byte_progress.h"
#include "src/app/data/data_keys.h"
#include "src/app/data/data_subcommands.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/say.h"
#include "src/base/units.h"
#include "src/keys/manifest_fields.h"
#include "src/train/run/access_check.h"
#include "src/train/start/open_dataset.h"
#include "src/train/start/run_place.h"

namespace trireme {
namespace {

// Number of tokens to scan: enough for three digits of the entropy, and quickly read.
constexpr std::int64_t kEntropyTokens = std::int64_t{1} << 27;

struct InfoArguments {
  std::string folder;
  bool json = false;
  bool no_scan = false;
  KeyChoice keys;
};

// Returns what to print about the encryption of a dataset whose digests match.
const char* encryption_text(const DatasetManifest& m) {
  return !m.is_encrypted() ? ""
         : m.is_open()     ? "; encrypted, and every block opens"
                           : "; encrypted, and no key was given to open it";
}

void print_info(const DatasetManifest& m, const std::optional<TokenCounts>& counts,
                const std::string& folder) {
  fmt::print("dataset          {}\n", printable(folder));
  fmt::print("tokens           {} ({}, {} bytes each)\n", m.n_tokens(),
             format_count(static_cast<double>(m.n_tokens())), m.token_bytes);
  if (m.has_mask()) {
    fmt::print("targets          {} ({:.1f} % of the tokens; the loss leaves out the others)\n",
               m.n_targets(),
               100 * static_cast<double>(m.n_targets()) / static_cast<double>(m.n_tokens()));
  }
  fmt::print("documents        {}\n", m.n_docs());
  fmt::print("shards           {}, {}\n", m.shards.size(), format_bytes(m.bytes()));
  fmt::print("tokenizer        {}, vocabulary {}, {}\n", printable(m.tokenizer), m.vocab,
             printable(m.tokenizer_digest));
  fmt::print("label            {}\n", m.label ? m.label->to_string() : "(none)");
  fmt::print("source           {}\n", m.source.empty() ? "(not given)" : printable(m.source));
  if (m.is_encrypted()) {
    fmt::print("encryption       {}, data key {}\n", kCipherName, printable(m.data_key));
  }
  fmt::print("digest           {}\n",
             m.is_open() ? m.digest() : "(of the plain data; it needs the key: see --key)");
  if (counts) {
    const double nats = unigram_entropy(*counts);
    fmt::print("unigram entropy  {:.4f} nats, {:.4f} bits per token (over {} tokens)\n", nats,
               nats / std::log(2.0), counts->tokens);
  }
}

nlohmann::ordered_json info_json(const DatasetManifest& m, const std::optional<TokenCounts>& counts,
                                 const std::string& folder) {
  nlohmann::ordered_json json = {{"schema", 1},
                                 {"folder", folder},
                                 {"version", m.version()},
                                 {"encrypted", m.is_encrypted()},
                                 {"label", label_json(m.label)},
                                 {"tokens", m.n_tokens()},
                                 {"targets", m.n_targets()},
                                 {"loss_mask", m.has_mask()},
                                 {"token_bytes", m.token_bytes},
                                 {"documents", m.n_docs()},
                                 {"shards", m.shards.size()},
                                 {"bytes", m.bytes()},
                                 {"tokenizer", m.tokenizer},
                                 {"tokenizer_digest", m.tokenizer_digest},
                                 {"vocab", m.vocab},
                                 {"source", m.source}};
  if (m.is_encrypted()) {
    json["data_key"] = m.data_key;
  }
  if (m.is_open()) {
    json["digest"] = m.digest();
  }
  if (counts) {
    json["unigram_entropy_nats"] = unigram_entropy(*counts);
    json["unigram_entropy_tokens"] = counts->tokens;
  }
  return json;
}

void run_info(const InfoArguments& arguments, const Access& access) {
  Dataset dataset = Dataset::open(arguments.folder);
  check_access(access, Deed::read, arguments.folder, dataset.manifest());
  check_named_keys(dataset.manifest(), arguments.keys, arguments.folder);
  const std::vector<std::string> uris = arguments.keys.options().uris;
  if (dataset.manifest().is_encrypted() && !uris.empty()) {
    dataset = Dataset::open(arguments.folder, KeyRing(uris));
  }
  std::optional<TokenCounts> counts;
  if (!arguments.no_scan && dataset.manifest().is_open()) {
    counts = count_tokens(dataset, kEntropyTokens);
  }
  if (arguments.json) {
    print_json(info_json(dataset.manifest(), counts, arguments.folder));
  } else {
    print_info(dataset.manifest(), counts, arguments.folder);
  }
}

struct VerifyArguments {
  std::string folder;
  bool json = false;
  KeyChoice keys;
};

// Merges the reports of all ranks.
VerifyReport gather(const VerifyReport& mine, const RankGroup& ranks) {
  const nlohmann::json packed = {{"shards", mine.shards},
                                 {"bytes", mine.bytes},
                                 {"damage", mine.damage},
                                 {"extras", mine.extras}};
  VerifyReport all;
  using Handler = nlohmann::json::error_handler_t;
  for (const std::string& text : ranks.gather(packed.dump(-1, ' ', true, Handler::replace))) {
    const nlohmann::json other = nlohmann::json::parse(text);
    all.shards += other["shards"].get<std::int64_t>();
    all.bytes += other["bytes"].get<std::int64_t>();
    for (const auto& line : other["damage"]) {
      all.damage.push_back(line.get<std::string>());
    }
    for (const auto& line : other["extras"]) {
      all.extras.push_back(line.get<std::string>());
    }
  }
  return all;
}

void print_verification(const VerifyReport& report, const DatasetManifest& manifest,
                        const VerifyArguments& arguments) {
  if (arguments.json) {
    const nlohmann::ordered_json json = {
        {"schema", 1},
        {"folder", arguments.folder},
        {"valid", report.damage.empty()},
        {"shards", report.shards},
        {"bytes", report.bytes},
        {"encrypted", manifest.is_encrypted()},
        {"opened", manifest.key != nullptr},
        {"digest",
         manifest.is_open() ? nlohmann::ordered_json(manifest.digest()) : nlohmann::ordered_json()},
        {"damage", report.damage},
        {"extra_files", report.extras}};
    print_json(json);
    return;
  }
  for (const std::string& line : report.damage) {
    fmt::print("damaged: {}\n", printable(line));
  }
  for (const std::string& line : report.extras) {
    fmt::print("note: {} is not part of the dataset and is never read\n", printable(line));
  }
  fmt::print("{}: {}, {} read: {}\n", printable(arguments.folder), counted(report.shards, "shard"),
             format_bytes(report.bytes),
             report.damage.empty() ? fmt::format("valid{}{}{}", manifest.is_open() ? ", " : "",
                                                 manifest.is_open() ? manifest.digest() : "",
                                                 encryption_text(manifest))
                                   : fmt::format("damaged in {}: do not train on it",
                                                 counted(report.damage.size(), "place")));
}

// Opens the manifest if there are keys, and otherwise checks what needs none. Collective.
void open_or_check_keys(DatasetManifest& manifest, const VerifyArguments& arguments,
                        Communicator& comm) {
  const std::vector<std::string> uris = arguments.keys.options().uris;
  if (!uris.empty()) {
    SharedKeys keys(comm, uris);
    unlock_dataset(manifest, arguments.folder, keys);
    return;
  }
  run_on_root(comm, [&] {
    (void)read_dataset_keys(arguments.folder, manifest);
    return std::string();
  });
}

// Adds what is wrong with the tokenizer's files in the dataset's folder.
void check_tokenizer(const std::filesystem::path& folder, const DatasetManifest& manifest,
                     VerifyReport& report) {
  try {
    if (manifest.tokenizer != "bytes") {
      (void)open_tokenizer_of(folder, manifest);
    }
  } catch (const PolicyError&) {
    throw;
  } catch (const Error& error) {
    report.damage.emplace_back(error.what());
  }
}

void run_verify(const VerifyArguments& arguments, Communicator& comm, const Access& access,
                int& exit_code) {
  const RankGroup ranks = rank_group(comm);
  const std::string text =
      ranks.broadcast(ranks.rank == 0 ? read_manifest_text(arguments.folder) : std::string());
  DatasetManifest manifest = parse_dataset_manifest(
      text, (std::filesystem::path(arguments.folder) / kDatasetManifestName).string());
  check_on_all_ranks(access, {Deed::read, Thing::dataset, arguments.folder, manifest.label}, comm);
  check_named_keys(manifest, arguments.keys, arguments.folder);
  if (manifest.is_encrypted()) {
    open_or_check_keys(manifest, arguments, comm);
  }
  VerifyReport mine = verify_shards(arguments.folder, manifest, ranks.rank, ranks.size,
                                    ByteProgress("verify", ranks.rank));
  if (ranks.rank == 0) {
    check_tokenizer(arguments.folder, manifest, mine);
  }
  const VerifyReport report = gather(mine, ranks);
  if (ranks.rank == 0) {
    print_verification(report, manifest, arguments);
  }
  if (!report.damage.empty()) {
    exit_code = static_cast<int>(ExitCode::bad_data);
  }
}

struct StageArguments {
  std::string from;
  std::string to;
};

// Throws PolicyError if the data may not be read, or may not be stored at the destination.
void check_stage(const Access& access, const StageArguments& arguments) {
  if (!access.has_policy()) {
    return;
  }
  const std::filesystem::path from = arguments.from;
  const std::optional<Label> label =
      parse_dataset_manifest(read_manifest_text(from), (from / kDatasetManifestName).string())
          .label;
  access.check({Deed::read, Thing::dataset, from, label});
  access.check({Deed::read, Thing::dataset, arguments.to, label});
}

void run_stage(const StageArguments& arguments, Communicator& comm, const Access& access) {
  if (arguments.to.empty()) {
    throw ConfigError("TO is empty: name the folder to create on the node");
  }
  check_place_of_dataset("TO", arguments.to);
  const RankGroup ranks = rank_group(comm);
  check_stage(access, arguments);
  // One rank per node copies, while the others wait for its lock.
  const StageReport report = stage(arguments.from, arguments.to, ByteProgress("stage", ranks.rank));
  if (!report.warning.empty()) {
    say("warning: " + report.warning);
  }
  ranks.broadcast("");
  if (ranks.rank == 0) {
    fmt::print("{}: {}{}\n", printable(arguments.to), format_bytes(report.bytes),
               report.was_there ? ", already staged" : " staged");
  }
}

}  // namespace

void add_data_info(CommandLine& data, const AccessSource& access) {
  CommandLine& command = data.add_command("info", "Show what a dataset holds");
  const auto arguments = std::make_shared<InfoArguments>();
  command.add_option("DIR", arguments->folder, "The dataset's folder").required();
  command.add_flag("--json", arguments->json, "Print JSON");
  command.add_flag("--no-scan", arguments->no_scan,
                   "Skip the unigram entropy, for which all tokens are read");
  arguments->keys.add_to(command);
  command.footer("Example:\n  trireme data info data/text/train --json");
  command.callback([arguments, access] { run_info(*arguments, access()); });
}

void add_data_verify(CommandLine& data, const CommunicatorAccess& communicator,
                     const AccessSource& access, int& exit_code) {
  CommandLine& command =
      data.add_command("verify", "Check every byte of a dataset; exit with 65 if it is damaged");
  const auto arguments = std::make_shared<VerifyArguments>();
  command.add_option("DIR", arguments->folder, "The dataset's folder").required();
  arguments->keys.add_to(command);
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer("Example:\n  mpirun -n 8 trireme data verify /data/c4");
  command.callback([arguments, communicator, access, &exit_code] {
    run_verify(*arguments, communicator(), access(), exit_code);
  });
}

void add_data_stage(CommandLine& data, const CommunicatorAccess& communicator,
                    const AccessSource& access) {
  CommandLine& command =
      data.add_command("stage", "Copy a dataset to each node's own disk and check the copy");
  const auto arguments = std::make_shared<StageArguments>();
  command.add_option("DIR", arguments->from, "The dataset's folder").required();
  command.add_option("TO", arguments->to, "The folder to create on the node").required();
  command.footer("Example:\n  srun --ntasks-per-node=1 trireme data stage /lustre/c4 /nvme/c4");
  command.callback(
      [arguments, communicator, access] { run_stage(*arguments, communicator(), access()); });
}

}  // namespace trireme
