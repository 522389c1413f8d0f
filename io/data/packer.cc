#include "io/data/packer.h"

#include <algorithm>
#include <memory>

#include "io/data/split_check.h"
#include "src/base/digest.h"
#include "src/base/error.h"

namespace trireme {
namespace {

constexpr std::int64_t kLeastShardBytes = std::int64_t{1} << 16;
constexpr std::int64_t kMostAlignment = std::int64_t{64} << 20;

void check_options(const PackOptions& options) {
  if (options.shard_bytes < kLeastShardBytes) {
    throw ConfigError(
        fmt::format("the shard size is {} bytes: it must be at least 64K (1G to 4G suit training)",
                    options.shard_bytes));
  }
  if (!(options.validation_fraction >= 0 && options.validation_fraction < 1)) {
    throw ConfigError(
        fmt::format("the validation fraction is {}: it must be at least 0 and below 1",
                    options.validation_fraction));
  }
  const auto alignment = static_cast<std::uint64_t>(options.alignment_bytes);
  if (options.alignment_bytes < 8 || options.alignment_bytes > kMostAlignment ||
      (alignment & (alignment - 1)) != 0) {
    throw ConfigError(
        fmt::format("the alignment is {} bytes: it must be a power of two from 8 to "
                    "64M, for example 4K or 1M",
                    options.alignment_bytes));
  }
}

// Returns what determines which documents are left out, or "" if none is.
std::string removal_text(Deduplication deduplication, std::span<const DocumentPlace> removed) {
  if (deduplication == Deduplication::none) {
    return "";
  }
  Sha256 digest;
  digest.update(removed.data(), static_cast<std::int64_t>(removed.size_bytes()));
  return fmt::format("without {} {}\n", static_cast<int>(deduplication), digest.finish_hex());
}

std::string fingerprint(const PackOptions& options, const Tokenizer& tokenizer,
                        const TextInputs& inputs, const TextShard& plan) {
  const Selection& selection = inputs.selection;
  Sha256 digest;
  digest.update(fmt::format("{} {} {} {} {} {} {}\n", kDatasetVersion, tokenizer.digest(),
                            options.field, options.alignment_bytes, options.source,
                            static_cast<int>(selection.part), selection.validation_fraction));
  for (const TextPiece& piece : plan.pieces) {
    const InputFile& file = inputs.files[piece.file];
    digest.update(fmt::format("{} {} {} {} {}\n", file.name, file.bytes, file.modified_ns,
                              piece.begin, piece.end));
  }
  digest.update(removal_text(options.deduplication, inputs.removed));
  if (options.chat) {
    digest.update(fmt::format("chat {}\n", options.chat->digest()));
  }
  return digest.finish_hex();
}

std::string restart_fingerprint(const std::vector<InputFile>& files, const TextShard& plan) {
  Sha256 digest;
  for (const TextPiece& piece : plan.pieces) {
    const InputFile& file = files[piece.file];
    digest.update(fmt::format("{} {}\n", file.inode, file.changed_ns));
  }
  return digest.finish_hex();
}

// Packs one dataset. The arguments are shared by both sides of a split.
PackReport pack_part(const PackOptions& options, const Tokenizer& tokenizer,
                     const TextInputs& inputs, const RankGroup& ranks) {
  const Selection& selection = inputs.selection;
  constexpr const char* kFolders[] = {"", "train", "validation"};
  DatasetJob job;
  job.folder = selection.part == Selection::Part::all
                   ? options.out
                   : options.out / kFolders[static_cast<int>(selection.part)];
  job.format.token_bytes = tokenizer.vocab() <= 65536 ? 2 : 4;
  job.format.vocab = tokenizer.vocab();
  job.format.tokenizer = tokenizer.name();
  job.format.tokenizer_digest = tokenizer.digest();
  job.format.source = options.source;
  job.format.has_mask = options.chat.has_value();
  job.label = options.label;
  job.format.alignment_bytes = options.alignment_bytes;
  job.progress = options.progress;
  job.make_key = options.make_key;
  if (selection.part != Selection::Part::all) {
    const bool validates = selection.part == Selection::Part::validation;
    job.empty_because = fmt::format(
        "no document of the inputs goes to {} with --validation-fraction {}: choose a {} fraction",
        job.folder.filename().string(), selection.validation_fraction,
        validates ? "larger" : "smaller");
  }
  const double text_bytes = static_cast<double>(options.shard_bytes / job.format.token_bytes) *
                            tokenizer.bytes_per_token();
  for (TextShard& plan :
       plan_shards(inputs.files, selection, static_cast<std::int64_t>(text_bytes))) {
    ShardJob shard;
    shard.fingerprint = fingerprint(options, tokenizer, inputs, plan);
    shard.restart_fingerprint = restart_fingerprint(inputs.files, plan);
    shard.input_bytes = plan.input_bytes();
    shard.fill = [&, plan = std::move(plan)](ShardWriter& writer, const auto& read) {
      return pack_text(inputs, tokenizer, plan, writer, read);
    };
    job.shards.push_back(std::move(shard));
  }
  return write_dataset(job, ranks);
}

}  // namespace

std::vector<PackReport> pack(const PackOptions& options, const RankGroup& ranks) {
  check_options(options);
  const std::unique_ptr<Tokenizer> tokenizer = options.open_tokenizer(options.tokenizer);
  std::string listed;
  if (ranks.rank == 0) {
    const InputFiles found = find_input_files(options.inputs, options.exclude, options.out);
    if (options.validation_fraction > 0) {
      check_split(found.files, options.validation_fraction);
    }
    listed = input_files_text(found);
  }
  const InputFiles inputs = parse_input_files(ranks.broadcast(listed));
  using Part = Selection::Part;
  const double fraction = options.validation_fraction;
  const ChatTemplate* const chat = options.chat ? &*options.chat : nullptr;
  std::vector<DocumentPlace> removed;
  if (options.deduplication != Deduplication::none) {
    const Selection all;
    removed = find_duplicates({inputs.files, all, options.field, chat}, options.deduplication,
                              ranks, options.progress);
  }
  std::vector<PackReport> reports;
  // Validation is packed first: if no jsonl document falls to it, the pack fails before the long
  // part is written.
  for (const Part part :
       fraction > 0 ? std::vector{Part::validation, Part::train} : std::vector{Part::all}) {
    const Selection selection = {part, fraction};
    reports.insert(reports.begin(),
                   pack_part(options, *tokenizer,
                             {inputs.files, selection, options.field, chat, removed}, ranks));
  }
  // Inputs that belong to neither part are counted once.
  reports.front().skipped_inputs = inputs.skipped;
  reports.front().inputs = inputs.files;
  reports.front().counts.empty_documents += std::ranges::count(inputs.files, 0, &InputFile::bytes);
  return reports;
}

}  // namespace trireme
