#include <fstream>
#include <iostream>

#include "io/data/convert.h"
#include "io/data/packer.h"
#include "src/app/data_subcommands.h"
#include "src/base/error.h"
#include "src/base/units.h"

namespace trireme {
namespace {

// What pack and convert have in common, as it stands on the command line.
struct OutputOptions {
  std::string out;
  std::string shard_size = "1G";
  std::string alignment = "4K";
  bool json = false;

  void add_to(CommandLine& command) {
    command.add_option("-o,--out", out, "the dataset's folder").required().type_name("DIR");
    command.add_option("--shard-size", shard_size, "about how large a shard gets: 64M, 1G")
        .show_default()
        .type_name("SIZE");
    command.add_option("--alignment", alignment, "where token data starts: 4K, or 1M for Lustre")
        .show_default()
        .type_name("SIZE");
    command.add_flag("--json", json, "report as JSON");
  }

  template <class Options>
  void apply(Options& options) const {
    if (out.empty()) {
      throw ConfigError("--out is empty: name the dataset's folder");
    }
    options.out = out;
    options.shard_bytes = parse_bytes(shard_size);
    options.alignment_bytes = parse_bytes(alignment);
  }
};

// One path a line; "-" is standard input.
void read_list(const std::string& from, std::vector<std::string>& inputs) {
  std::ifstream file;
  if (from != "-") {
    file.open(from);
    std::error_code ignored;
    if (!file || std::filesystem::is_directory(from, ignored)) {
      throw NotFound(fmt::format("--files-from {}: cannot be read", from));
    }
  }
  std::istream& lines = from == "-" ? std::cin : file;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty()) {
      inputs.push_back(line);
    }
  }
}

struct PackArguments {
  PackOptions options;
  OutputOptions output;
  std::string files_from;
};

void run_pack(PackArguments& arguments, Communicator& comm) {
  const RankGroup ranks = rank_group(comm);
  arguments.output.apply(arguments.options);
  if (!arguments.files_from.empty() && ranks.rank == 0) {
    read_list(arguments.files_from, arguments.options.inputs);
  }
  if (arguments.options.inputs.empty() && ranks.rank == 0) {
    throw ConfigError("nothing to pack: name files or folders, or --files-from a list of them");
  }
  arguments.options.progress = ByteProgress("pack", ranks.rank);
  const std::vector<PackReport> reports = pack(arguments.options, ranks);
  if (ranks.rank == 0) {
    print_pack_reports(reports, arguments.output.json);
  }
}

}  // namespace

void add_data_pack(CommandLine& data, const CommunicatorAccess& communicator) {
  CommandLine& command = data.add_command(
      "pack", "Pack text files (.txt, .md, source code, any text; .jsonl) into a dataset");
  const auto arguments = std::make_shared<PackArguments>();
  PackOptions& options = arguments->options;
  command.add_option("INPUT", options.inputs, "files and folders");
  command
      .add_option("--files-from", arguments->files_from, "a list of inputs, one a line; - is stdin")
      .type_name("FILE");
  arguments->output.add_to(command);
  command.add_option("--exclude", options.exclude, "shell patterns of names to leave out")
      .type_name("PATTERN");
  command.add_option("--field", options.field, "the field of a .jsonl object that holds the text")
      .show_default();
  command.add_option("--tokenizer", options.tokenizer, "bytes: 256 bytes and end-of-document")
      .show_default();
  command
      .add_option("--validation-fraction", options.validation_fraction,
                  "split by document into OUT/train and OUT/validation")
      .show_default()
      .type_name("F");
  command.add_option("--source", options.source, "where the text is from: kept in the dataset");
  command.footer(
      "A pack that was interrupted goes on when the same command is given again.\n"
      "Example:\n"
      "  trireme data pack docs/ src/ --out data/text --validation-fraction 0.1\n"
      "  mpirun -n 16 trireme data pack /corpus --exclude '*.log' --shard-size 2G --out /data/c4\n"
      "  git ls-files | trireme data pack --files-from - --out data/repository");
  command.callback([arguments, communicator] { run_pack(*arguments, communicator()); });
}

namespace {

struct ConvertArguments {
  ConvertOptions options;
  OutputOptions output;
};

void run_convert(ConvertArguments& arguments, Communicator& comm) {
  const RankGroup ranks = rank_group(comm);
  arguments.output.apply(arguments.options);
  arguments.options.progress = ByteProgress("convert", ranks.rank);
  const PackReport report = convert(arguments.options, ranks);
  if (ranks.rank == 0) {
    print_pack_reports({report}, arguments.output.json);
  }
}

}  // namespace

void add_data_convert(CommandLine& data, const CommunicatorAccess& communicator) {
  CommandLine& command = data.add_command(
      "convert", "Convert HDF5 token files of other programs (chunked, filtered) into a dataset");
  const auto arguments = std::make_shared<ConvertArguments>();
  ConvertOptions& options = arguments->options;
  command.add_option("INPUT", options.inputs, "HDF5 files, and folders of them").required();
  arguments->output.add_to(command);
  command.add_option("--vocab", options.vocab, "the number of ids of the tokenizer").required();
  command.add_option("--tokens", options.tokens, "the dataset of tokens: integers in one dimension")
      .show_default();
  command.add_option("--offsets", options.offsets,
                     "the dataset of document offsets: 0, then where each document ends, up to "
                     "the number of tokens (default: /doc_offsets if there is one)");
  command
      .add_option("--tokenizer", options.tokenizer,
                  "name of the tokenizer that made the ids; bytes: those of `data pack`. Sets of "
                  "different tokenizers don't go into one run")
      .show_default();
  command.add_option("--source", options.source, "where the tokens are from: kept in the dataset");
  command.footer(
      "Example:\n"
      "  trireme data convert tokens.h5 --tokens /train/ids --vocab 50257 --out data/converted");
  command.callback([arguments, communicator] { run_convert(*arguments, communicator()); });
}

}  // namespace trireme
