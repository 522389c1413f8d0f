#include "io/data/shard_note.h"

#include <nlohmann/json.hpp>

#include "io/data/block_digests.h"
#include "io/data/shard_entry_json.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/json_fields.h"
#include "src/base/sealed_json.h"

namespace trireme {
namespace {

constexpr std::int64_t kNoteVersion = 1;

}  // namespace

std::string note_text(const ShardNote& note) {
  nlohmann::ordered_json object;
  object["version"] = kNoteVersion;
  object["fingerprint"] = note.fingerprint;
  object["files"] = note.counts.files;
  object["binary_files"] = note.counts.binary_files;
  object["empty_documents"] = note.counts.empty_documents;
  object["skipped_members"] = note.counts.skipped_members;
  object["duplicates"] = note.counts.duplicates;
  object["shard"] = note.shard ? shard_entry_json(*note.shard) : nlohmann::ordered_json();
  return seal_json(object);
}

ShardNote parse_note(std::string_view text, int token_bytes) {
  const nlohmann::json object = unseal_json(text, kNoteVersion);
  ShardNote note;
  note.fingerprint = text_field(object, "fingerprint");
  note.counts.files = count_field(object, "files");
  note.counts.binary_files = count_field(object, "binary_files");
  note.counts.empty_documents = count_field(object, "empty_documents");
  note.counts.skipped_members = count_field(object, "skipped_members");
  note.counts.duplicates = count_field(object, "duplicates");
  const nlohmann::json shard = object.value("shard", nlohmann::json());
  if (!shard.is_null()) {
    note.shard = parse_shard_entry(shard, token_bytes);
  }
  return note;
}

std::optional<ShardNote> trusted_note(const std::filesystem::path& path,
                                      const std::filesystem::path& folder, int token_bytes,
                                      const std::string& fingerprint) {
  try {
    ShardNote note = parse_note(read_file(path), token_bytes);
    if (note.fingerprint != fingerprint) {
      return std::nullopt;
    }
    if (note.shard) {
      const FileDigests found = digest_file(File::open_to_read(folder / note.shard->path));
      if (found.bytes != note.shard->bytes || found.whole != note.shard->xxh3) {
        return std::nullopt;
      }
    }
    return note;
  } catch (const NotFound&) {
    return std::nullopt;
  } catch (const DataError&) {
    return std::nullopt;
  }
}

}  // namespace trireme
