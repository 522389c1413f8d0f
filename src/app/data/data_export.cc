#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "io/data/dataset_export.h"
#include "src/app/access/key_choice.h"
#include "src/app/access/output_place.h"
#include "src/app/command/standard_output.h"
#include "src/app/data/byte_progress.h"
#include "src/app/data/data_keys.h"
#include "src/app/data/data_subcommands.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/units.h"
#include "src/train/start/open_dataset.h"

namespace trireme {
namespace {

struct DataExportArguments {
  std::string folder;
  std::string out;
  std::string format;
  KeyChoice keys;
  bool plain = false;
  bool json = false;
};

DatasetExport export_of(const DataExportArguments& arguments, int rank) {
  DatasetExport options;
  if (arguments.format == "npy") {
    options.format = ArrayFormat::npy;
  } else if (arguments.format != "megatron") {
    throw ConfigError(
        fmt::format("--format {}: expected megatron or npy", printable(arguments.format)));
  }
  if (arguments.out.empty() || arguments.out.ends_with('/')) {
    throw ConfigError("--out is a name, to which the ends of the files' names are added");
  }
  check_in_no_data("--out", arguments.out);
  options.out = arguments.out;
  options.progress = ByteProgress("export", rank);
  return options;
}

void run_export(const DataExportArguments& arguments, Communicator& comm, const Access& access) {
  const RankGroup ranks = rank_group(comm);
  const DatasetExport options = export_of(arguments, ranks.rank);
  // Somebody may lead a link in the path to another dataset after the policy was asked about this
  // one, so links are resolved first.
  std::error_code unresolved;
  std::filesystem::path folder = std::filesystem::canonical(arguments.folder, unresolved);
  folder = unresolved ? std::filesystem::path(arguments.folder) : folder;
  SharedKeys keys(comm, arguments.keys.options().uris);
  constexpr std::int64_t kAnyVocabulary = std::int64_t{1} << 32;
  // The files are not encrypted, and other programs ignore the label beside them, so that exporting
  // needs the right to do so.
  const Dataset dataset = open_dataset(
      folder, kAnyVocabulary, comm,
      {.keys = &keys, .accept_plain = true, .access = &access, .deed = Deed::export_plain});
  check_named_keys(dataset.manifest(), arguments.keys, arguments.folder);
  if (dataset.manifest().is_encrypted() && !arguments.plain) {
    throw PolicyError(fmt::format(
        "{} is encrypted, but exported files are not: give --plain if they may be written",
        printable(arguments.folder)));
  }
  export_dataset(dataset, options, ranks);
  if (ranks.rank != 0) {
    return;
  }
  const DatasetManifest& manifest = dataset.manifest();
  std::vector<std::string> files;
  for (const std::filesystem::path& file :
       exported_files(options, manifest.has_mask(), manifest.label.has_value())) {
    files.push_back(file.string());
  }
  if (arguments.json) {
    print_json({{"schema", 1},
                {"folder", arguments.folder},
                {"files", files},
                {"tokens", manifest.n_tokens()},
                {"documents", manifest.n_docs()},
                {"token_bytes", manifest.token_bytes},
                {"vocab", manifest.vocab},
                {"tokenizer", manifest.tokenizer},
                {"digest", manifest.digest()}});
    return;
  }
  fmt::print("{}: {}, {}, {} bytes each; vocabulary {}\n",
             printable(fmt::format("{}", fmt::join(files, ", "))),
             counted(manifest.n_tokens(), "token"), counted(manifest.n_docs(), "document"),
             manifest.token_bytes, manifest.vocab);
}

}  // namespace

void add_data_export(CommandLine& data, const CommunicatorAccess& communicator,
                     const AccessSource& access) {
  CommandLine& command =
      data.add_command("export", "Write the tokens of a dataset as files of other programs");
  const auto arguments = std::make_shared<DataExportArguments>();
  command.add_option("DIR", arguments->folder, "The dataset's folder").required();
  command
      .add_option(
          "--format", arguments->format,
          "Which files: megatron (NAME.bin and NAME.idx of Megatron-LM) or npy (arrays of "
          "NumPy, NAME.npy with the tokens and NAME.offsets.npy with the ends of documents)")
      .required()
      .type_name("FORMAT");
  command.add_option("-o,--out", arguments->out, "The files' names, without their ends")
      .required()
      .type_name("NAME");
  arguments->keys.add_to(command);
  command.add_flag("--plain", arguments->plain,
                   "Write an encrypted dataset's tokens without encryption");
  command.add_flag("--json", arguments->json, "Print JSON");
  command.footer(
      "Examples:\n"
      "  trireme data export data/text/train --format megatron --out exported/text\n"
      "  mpirun -n 8 trireme data export /data/c4 --format npy --out /scratch/c4");
  command.callback(
      [arguments, communicator, access] { run_export(*arguments, communicator(), access()); });
}

}  // namespace trireme
