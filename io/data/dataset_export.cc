#include "io/data/dataset_export.h"

#include <algorithm>

#include <unistd.h>

#include "io/data/label_file.h"
#include "io/data/megatron_index.h"
#include "io/data/npy_header.h"
#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kExportTokens = std::int64_t{1} << 20;

fs::path temporary_of(const fs::path& path) { return path.string() + ".tmp"; }

// ExportWriter writes the parts of both files that come from one shard.
class ExportWriter {
 public:
  ExportWriter(const Dataset& dataset, const DatasetExport& options, const RankGroup& ranks)
      : dataset_(dataset),
        manifest_(dataset.manifest()),
        is_megatron_(options.format == ArrayFormat::megatron),
        files_(exported_files(options, manifest_.has_mask(), manifest_.label.has_value())),
        progress_(options.progress),
        ranks_(ranks) {
    for (std::size_t i = 0; i < manifest_.shards.size(); ++i) {
      total_ += is_mine(i) ? manifest_.shards[i].n_tokens * manifest_.token_bytes : 0;
    }
  }

  // Creates the temporary files, with their headers. On rank 0.
  void begin() const {
    for (const fs::path& path : files_) {
      if (fs::exists(fs::symlink_status(path))) {
        throw PolicyError(fmt::format(
            "{} exists already: choose another name with --out, or remove it", path.string()));
      }
    }
    if (const fs::path folder = files_.front().parent_path(); !folder.empty()) {
      make_directories(folder);
    }
    const std::int64_t documents = manifest_.n_docs();
    std::vector<std::string> heads;
    if (is_megatron_) {
      heads = {"", megatron_header(documents, manifest_.token_bytes)};
    } else {
      heads = {npy_header_text(manifest_.n_tokens(), {.bytes = manifest_.token_bytes}),
               npy_header_text(documents + 1, {.bytes = 8, .is_signed = true})};
    }
    if (manifest_.has_mask()) {
      heads.push_back(npy_header_text(manifest_.n_tokens(), {.bytes = 1}));
    }
    if (manifest_.label) {
      heads.push_back(label_file_text(*manifest_.label));
    }
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const fs::path temporary = temporary_of(files_.at(i));
      ::unlink(temporary.c_str());
      File file = File::create_new(temporary);
      file.write(heads.at(i).data(), std::ssize(heads.at(i)));
      file.close();
    }
  }

  // Writes this rank's shards.
  void run() {
    File tokens = File::open_to_update(temporary_of(files_[0]));
    File documents = File::open_to_update(temporary_of(files_[1]));
    std::vector<File> masks;
    if (manifest_.has_mask()) {
      masks.push_back(File::open_to_update(temporary_of(files_[2])));
    }
    std::int64_t first_token = 0;
    std::int64_t first_document = 0;
    for (std::size_t i = 0; i < manifest_.shards.size(); ++i) {
      const ShardEntry& shard = manifest_.shards[i];
      if (is_mine(i)) {
        write_documents(i, first_token, first_document, documents);
        write_tokens(i, first_token, tokens);
        for (File& mask : masks) {
          write_mask(i, first_token, mask);
        }
      }
      first_token += shard.n_tokens;
      first_document += shard.n_docs;
    }
    if (ranks_.rank == 0) {
      write_last_border(first_token, first_document, documents);
    }
    masks.push_back(std::move(tokens));
    masks.push_back(std::move(documents));
    for (File& file : masks) {
      file.sync();
      file.close();
    }
  }

  // Gives the files their names, the label first: tokens are never there without it. On rank 0.
  void end() const {
    std::for_each(files_.rbegin(), files_.rend(),
                  [](const fs::path& path) { rename_durably(temporary_of(path), path); });
  }

  void remove_temporary() const {
    for (const fs::path& path : files_) {
      ::unlink(temporary_of(path).c_str());
    }
  }

 private:
  bool is_mine(std::size_t shard) const {
    return shard % static_cast<std::size_t>(ranks_.size) == static_cast<std::size_t>(ranks_.rank);
  }

  void write_tokens(std::size_t shard, std::int64_t first_token, File& to) {
    const std::int64_t head = is_megatron_ ? 0 : kNpyHeaderBytes;
    const std::int64_t count = manifest_.shards[shard].n_tokens;
    std::vector<std::byte> scratch;
    for (std::int64_t first = 0; first < count; first += kExportTokens) {
      const TokenRun run{shard, first, std::min(kExportTokens, count - first)};
      const std::byte* const raw = dataset_.read(run, scratch);
      dataset_.check_vocabulary(run, raw);
      to.write_at(head + (first_token + first) * manifest_.token_bytes, raw,
                  run.count * manifest_.token_bytes);
      done_ += run.count * manifest_.token_bytes;
      if (progress_) {
        progress_(done_, total_);
      }
    }
  }

  void write_mask(std::size_t shard, std::int64_t first_token, File& to) const {
    const std::int64_t count = manifest_.shards[shard].n_tokens;
    std::vector<std::byte> scratch;
    for (std::int64_t first = 0; first < count; first += kExportTokens) {
      const TokenRun run{shard, first, std::min(kExportTokens, count - first)};
      to.write_at(kNpyHeaderBytes + first_token + first, dataset_.read_mask(run, scratch),
                  run.count);
    }
  }

  void write_documents(std::size_t shard, std::int64_t first_token, std::int64_t first_document,
                       File& to) const {
    const std::vector<std::int64_t> offsets = dataset_.document_offsets(shard);
    if (!is_megatron_) {
      std::vector<std::int64_t> begins(offsets.begin(), offsets.end() - 1);
      for (std::int64_t& begin : begins) {
        begin += first_token;
      }
      to.write_at(kNpyHeaderBytes + 8 * first_document, begins.data(), 8 * std::ssize(begins));
      return;
    }
    std::vector<std::int64_t> lengths(offsets.size() - 1);
    for (std::size_t i = 0; i < lengths.size(); ++i) {
      lengths[i] = offsets[i + 1] - offsets[i];
    }
    const MegatronPart part =
        megatron_part(lengths, first_token, first_document, manifest_.token_bytes);
    const std::int64_t all = manifest_.n_docs();
    to.write_at(megatron_lengths_at(first_document), part.lengths.data(), std::ssize(part.lengths));
    to.write_at(megatron_offsets_at(first_document, all), part.offsets.data(),
                std::ssize(part.offsets));
    to.write_at(megatron_documents_at(first_document, all), part.documents.data(),
                std::ssize(part.documents));
  }

  void write_last_border(std::int64_t tokens, std::int64_t documents, File& to) const {
    const std::int64_t value = is_megatron_ ? documents : tokens;
    to.write_at(is_megatron_ ? megatron_documents_at(documents, documents)
                             : kNpyHeaderBytes + 8 * documents,
                &value, 8);
  }

  const Dataset& dataset_;
  const DatasetManifest& manifest_;
  bool is_megatron_;
  std::vector<fs::path> files_;
  const PackProgress& progress_;
  const RankGroup& ranks_;
  std::int64_t total_ = 0;  // bytes of tokens that this rank writes
  std::int64_t done_ = 0;
};

}  // namespace

std::vector<fs::path> exported_files(const DatasetExport& options, bool has_mask, bool has_label) {
  const std::string out = options.out.string();
  std::vector<fs::path> files = options.format == ArrayFormat::megatron
                                    ? std::vector<fs::path>{out + ".bin", out + ".idx"}
                                    : std::vector<fs::path>{out + ".npy", out + ".offsets.npy"};
  if (has_mask) {
    files.emplace_back(out + ".loss_mask.npy");
  }
  if (has_label) {
    files.push_back(label_file_of(options.format == ArrayFormat::megatron ? files[1] : files[0]));
  }
  return files;
}

void export_dataset(const Dataset& dataset, const DatasetExport& options, const RankGroup& ranks) {
  ExportWriter writer(dataset, options, ranks);
  if (ranks.rank == 0) {
    writer.begin();
  }
  ranks.broadcast("");  // the files are there
  try {
    writer.run();
  } catch (...) {
    // If there are several ranks, others may still be writing.
    if (ranks.size == 1) {
      writer.remove_temporary();
    }
    throw;
  }
  (void)ranks.gather("");  // every rank has written
  if (ranks.rank == 0) {
    writer.end();
  }
  ranks.broadcast("");
}

}  // namespace trireme
