#include <optional>

#include "io/data/convert.h"
#include "io/data/input_files.h"
#include "io/data/packer.h"
#include "io/data/path_list.h"
#include "io/tokens/tokenizer_files.h"
#include "src/app/access/folder_access.h"
#include "src/app/data/byte_progress.h"
#include "src/app/data/data_keys.h"
#include "src/app/data/data_provenance.h"
#include "src/app/data/data_subcommands.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/units.h"
#include "src/train/run/access_check.h"
#include "src/train/start/run_place.h"

namespace trireme {
namespace {

// Holds the options that pack and convert have in common, as typed.
struct OutputOptions {
  std::string out;
  std::string shard_size = "1G";
  std::string alignment = "4K";
  RecipientChoice recipients;
  std::vector<std::string> label;
  bool json = false;

  void add_to(CommandLine& command) {
    command.add_option("-o,--out", out, "The folder to write the dataset to")
        .required()
        .type_name("DIR");
    command.add_option("--shard-size", shard_size, "Approximate size of a shard, as in 64M")
        .type_name("SIZE");
    command
        .add_option("--alignment", alignment,
                    "Alignment of the token data in a shard: 4K, or 1M on Lustre")
        .type_name("SIZE");
    recipients.add_to(command);
    command
        .add_option("--label", label,
                    "Label the dataset: classification=WORD, jurisdiction=WORD[,WORD], "
                    "owner=WORD[,WORD] or retention=YYYY-MM-DD; can be repeated. Checkpoints "
                    "inherit it")
        .one_value_per_use()
        .type_name("KEY=VALUE");
    command.add_flag("--json", json, "Print JSON");
  }

  template <class Options>
  void apply(Options& options) const {
    if (out.empty()) {
      throw ConfigError("--out is empty: name the dataset's folder");
    }
    check_place_of_dataset("--out", out);
    options.out = out;
    options.label = parse_label(label);
    options.shard_bytes = parse_bytes(shard_size);
    options.alignment_bytes = parse_bytes(alignment);
  }
};

// Opens the keys for which a dataset is encrypted. Collective.
class OutputKeys {
 public:
  OutputKeys(const OutputOptions& output, Communicator& comm) : comm_(comm) {
    if (const std::vector<std::string> uris = output.recipients.keys(); !uris.empty()) {
      keys_.emplace(comm, uris);
    }
  }
  // Returns nothing if the dataset is not to be encrypted.
  DatasetKeyMaker maker() { return keys_ ? dataset_key_maker(*keys_, comm_) : DatasetKeyMaker(); }

 private:
  Communicator& comm_;
  std::optional<SharedKeys> keys_;
};

// Collective. Throws PolicyError if the site's policy forbids such a dataset there.
void check_output(const Access& access, const std::filesystem::path& out,
                  const std::optional<Label>& label, Communicator& comm) {
  check_on_all_ranks(access, {Deed::write, Thing::dataset, out, label}, comm);
}

struct PackArguments {
  PackOptions options;
  OutputOptions output;
  std::string files_from;
  std::string end_token;
  std::string deduplication;
  bool messages = false;
  std::string chat_template;
};

// Sets what --messages means. Throws ConfigError if there is no template.
void take_messages(PackArguments& arguments) {
  PackOptions& options = arguments.options;
  if (!arguments.messages) {
    if (!arguments.chat_template.empty()) {
      throw ConfigError("--chat-template is for conversations: give --messages, too");
    }
    return;
  }
  const bool has_files = options.tokenizer != "bytes";
  options.field = options.field == PackOptions().field ? "messages" : options.field;
  options.chat = ChatTemplate::open(has_files ? options.tokenizer : "", arguments.chat_template);
  if (!options.chat) {
    throw ConfigError(fmt::format(
        "the tokenizer {} has no chat template: give a file with one by --chat-template",
        options.tokenizer));
  }
}

// Stores the tokenizer in the dataset's folder, with a template that was given beside it.
void store_tokenizer_of(const PackArguments& arguments, const std::filesystem::path& folder) {
  store_tokenizer(arguments.options.tokenizer, arguments.end_token, folder);
  if (arguments.options.tokenizer != "bytes" && !arguments.chat_template.empty()) {
    write_file_durably(folder / "tokenizer" / "chat_template.jinja",
                       arguments.options.chat->source());
  }
}

Deduplication deduplication_of(const std::string& word) {
  if (word.empty()) {
    return Deduplication::none;
  }
  if (word != "exact" && word != "minhash") {
    throw ConfigError(fmt::format(
        "--dedup {}: expected exact, for equal documents, or minhash, for nearly equal ones, too",
        word));
  }
  return word == "exact" ? Deduplication::exact : Deduplication::minhash;
}

// A label is that of a whole dataset: what is made of its shards alone would lose it.
void check_shards_among(const std::vector<std::string>& inputs, const Access& access) {
  for (const std::string& input : inputs) {
    const std::filesystem::path dataset = dataset_with(input);
    if (dataset.empty()) {
      continue;
    }
    const DatasetManifest manifest = parse_dataset_manifest(
        read_manifest_text(dataset), (dataset / kDatasetManifestName).string());
    if (manifest.label) {
      throw ConfigError(fmt::format(
          "{} is a part of the dataset {}, whose label counts for it: name what the dataset was "
          "made of instead, or write its documents with `trireme data export`",
          input, dataset.string()));
    }
    check_access(access, Deed::read, dataset, manifest);
  }
}

// Throws NotFound for a path that does not exist. It is not quoted: a file that is named by mistake
// may hold a key or a passphrase, and messages go to the audit log.
void check_listed(const std::vector<std::string>& paths, const std::string& list) {
  for (std::size_t i = 0; i < paths.size(); ++i) {
    std::error_code unknown;
    const auto kind = std::filesystem::symlink_status(paths[i], unknown).type();
    if (kind == std::filesystem::file_type::not_found) {
      throw NotFound(
          fmt::format("{}: path {} of {} does not exist", list, i + 1, std::ssize(paths)));
    }
  }
}

void run_pack(PackArguments& arguments, Communicator& comm, const Access& access) {
  const RankGroup ranks = rank_group(comm);
  arguments.output.apply(arguments.options);
  arguments.options.deduplication = deduplication_of(arguments.deduplication);
  take_messages(arguments);
  check_output(access, arguments.options.out, arguments.options.label, comm);
  if (!arguments.files_from.empty() && ranks.rank == 0) {
    std::vector<std::string>& inputs = arguments.options.inputs;
    const std::vector<std::string> listed = read_path_list(arguments.files_from);
    check_listed(listed, arguments.files_from);
    inputs.insert(inputs.end(), listed.begin(), listed.end());
  }
  if (arguments.options.inputs.empty() && ranks.rank == 0) {
    throw ConfigError(
        "nothing to pack: name files or folders, or give a list of them with --files-from");
  }
  check_shards_among(arguments.options.inputs, access);
  std::optional<DataProvenance> provenance;
  if (ranks.rank == 0) {
    provenance.emplace(arguments.options);
  }
  OutputKeys keys(arguments.output, comm);
  arguments.options.make_key = keys.maker();
  if (provenance && arguments.options.make_key) {
    provenance->warn_of_plain_names();
  }
  arguments.options.progress = ByteProgress("pack", ranks.rank);
  arguments.options.open_tokenizer = [&arguments](const std::string& name) {
    return open_tokenizer(name, arguments.end_token);
  };
  const std::vector<PackReport> reports = pack(arguments.options, ranks);
  if (ranks.rank == 0) {
    for (const PackReport& report : reports) {
      store_tokenizer_of(arguments, report.folder);
      provenance->sign(report, reports.front().inputs);
    }
    print_pack_reports(reports, arguments.output.json);
  }
}

void add_messages(CommandLine& command, PackArguments& arguments) {
  command.add_flag("--messages", arguments.messages,
                   "Each line is a conversation: the field messages has objects with role and "
                   "content. It is written with the tokenizer's chat template, and training "
                   "learns the answers of the assistant only");
  command
      .add_option("--chat-template", arguments.chat_template,
                  "With --messages: a file with the chat template (Jinja), instead of the "
                  "tokenizer's")
      .type_name("FILE");
}

// Adds the options that say which documents go where.
void add_choice_of_documents(CommandLine& command, PackArguments& arguments) {
  command
      .add_option("--validation-fraction", arguments.options.validation_fraction,
                  "Put this fraction of the documents into DIR/validation and the others into "
                  "DIR/train; 0 = do not split")
      .type_name("FRACTION");
  command
      .add_option("--dedup", arguments.deduplication,
                  "Leave out documents that repeat earlier ones: exact, those with equal texts, or "
                  "minhash, also those with nearly equal texts")
      .type_name("KIND");
  command.add_option("--source", arguments.options.source,
                     "A note on the origin of the text, stored in the dataset");
}

}  // namespace

void add_data_pack(CommandLine& data, const CommunicatorAccess& communicator,
                   const AccessSource& access) {
  CommandLine& command = data.add_command(
      "pack",
      "Pack text files (.txt, .md, source code, any text; .jsonl; .tar; each also as .gz or .zst) "
      "into a dataset");
  const auto arguments = std::make_shared<PackArguments>();
  PackOptions& options = arguments->options;
  command.add_option("INPUT", options.inputs, "Files and folders to pack");
  command
      .add_option(
          "--files-from", arguments->files_from,
          "Also pack the files and folders listed in FILE, one per line; - is standard input")
      .type_name("FILE");
  arguments->output.add_to(command);
  command
      .add_option(
          "--exclude", options.exclude,
          "Leave out files and folders whose name matches this shell pattern; can be repeated")
      .type_name("PATTERN");
  command
      .add_option("--field", options.field,
                  "The field with the text in the objects of .jsonl files, and of .json files in "
                  "archives")
      .type_name("NAME");
  command
      .add_option("--tokenizer", options.tokenizer,
                  "The tokenizer: bytes, which has 256 bytes and an end-of-document token, or the "
                  "files of another: tokenizer.json, or a folder with it")
      .type_name("NAME|PATH");
  command
      .add_option("--end-of-document", arguments->end_token,
                  "The token that ends a document (default: the one that the tokenizer's files "
                  "name)")
      .type_name("TOKEN");
  add_messages(command, *arguments);
  add_choice_of_documents(command, *arguments);
  command.footer(
      "The same command resumes an interrupted pack. If the site has a key (audit.key), the "
      "dataset gets a signed statement about its files and those it was packed from: see 'trireme "
      "verify'.\n"
      "Examples:\n"
      "  trireme data pack docs/ src/ --out data/text --validation-fraction 0.1\n"
      "  mpirun -n 16 trireme data pack /corpus --exclude '*.log' --shard-size 2G \\\n"
      "    --out /data/c4\n"
      "  trireme data pack corpus.jsonl --tokenizer llama/ --out data/llama\n"
      "  trireme data pack chats.jsonl --messages --tokenizer llama/ --out data/chats\n"
      "  trireme data pack secrets/ --key file:/etc/trireme/site.key \\\n"
      "    --out /data/sealed \\\n"
      "    --label classification=secret --label jurisdiction=AE --label owner=health\n"
      "  git ls-files | trireme data pack --files-from - --out data/repository");
  command.callback(
      [arguments, communicator, access] { run_pack(*arguments, communicator(), access()); });
}

namespace {

struct ConvertArguments {
  ConvertOptions options;
  OutputOptions output;
};

// Throws ConfigError if --tokenizer of `data convert` has the path of a file or folder, which would
// become the tokenizer's name.
void check_is_name(const std::string& tokenizer) {
  std::error_code code;
  const bool is_path =
      tokenizer.find('/') != tokenizer.npos || std::filesystem::is_regular_file(tokenizer, code);
  if (is_path ? std::filesystem::exists(tokenizer, code) : holds_tokenizer(tokenizer)) {
    throw ConfigError(fmt::format(
        "--tokenizer takes the name of a tokenizer, and {} is the path of a file or folder, which "
        "`data convert` does not read: choose a name that no file or folder here has, the same for "
        "all datasets of this tokenizer",
        tokenizer));
  }
}

void run_convert(ConvertArguments& arguments, Communicator& comm, const Access& access) {
  const RankGroup ranks = rank_group(comm);
  check_is_name(arguments.options.tokenizer);
  arguments.output.apply(arguments.options);
  check_shards_among(arguments.options.inputs, access);
  check_output(access, arguments.options.out, arguments.options.label, comm);
  arguments.options.classifications = access.classifications();
  arguments.options.admit = [&](const std::optional<Label>& label) {
    check_output(access, arguments.options.out, label, comm);
  };
  OutputKeys keys(arguments.output, comm);
  arguments.options.make_key = keys.maker();
  arguments.options.progress = ByteProgress("convert", ranks.rank);
  const PackReport report = convert(arguments.options, ranks);
  if (ranks.rank == 0) {
    print_pack_reports({report}, arguments.output.json);
  }
}

}  // namespace

void add_data_convert(CommandLine& data, const CommunicatorAccess& communicator,
                      const AccessSource& access) {
  CommandLine& command = data.add_command("convert",
                                          "Convert tokens in files of other programs into a "
                                          "dataset: HDF5, Megatron-LM's .bin and .idx, "
                                          "NumPy's .npy");
  const auto arguments = std::make_shared<ConvertArguments>();
  ConvertOptions& options = arguments->options;
  command
      .add_option(
          "INPUT", options.inputs,
          "Files of tokens (.h5, .hdf5, .npy, .idx with .bin), prefixes of Megatron-LM, and "
          "folders that hold some")
      .required();
  arguments->output.add_to(command);
  command.add_option("--vocab", options.vocab, "Vocabulary size of the tokenizer").required();
  command
      .add_option("--tokens", options.tokens,
                  "Name of the HDF5 dataset with the tokens: integers in one dimension")
      .type_name("NAME");
  command
      .add_option("--offsets", options.offsets,
                  "Name of the HDF5 dataset with the document offsets: 0, then where each document "
                  "ends, up to the number of tokens (default: /doc_offsets if there is one)")
      .type_name("NAME");
  command
      .add_option(
          "--tokenizer", options.tokenizer,
          "Name of the tokenizer that made the ids, not its files; bytes means the one of data "
          "pack. A run refuses datasets of different tokenizers")
      .type_name("NAME");
  command.add_option("--source", options.source,
                     "A note on the origin of the tokens, stored in the dataset");
  command.footer(
      "Examples:\n"
      "  trireme data convert tokens.h5 --tokens /train/ids --vocab 50257 \\\n"
      "    --out data/converted\n"
      "  mpirun -n 8 trireme data convert corpus_text_document --vocab 50257 \\\n"
      "    --out data/megatron");
  command.callback(
      [arguments, communicator, access] { run_convert(*arguments, communicator(), access()); });
}

}  // namespace trireme
