// The manifest lists what a checkpoint holds and where; everything else is read through it.
//
//   {"format": "trireme-checkpoint", "version": 1,                     2 if it is encrypted,
//                                                                     3 if it has a label
//    "software": "trireme 0.1.0", "created": "2025-01-31T12:00:00Z",
//    "generation": 3,                          the run that wrote it; later runs have larger ones
//    "read_back": true,                        every byte was read and compared before the commit
//    "step": 100, "samples": 3200,
//    "config": {...}, "numerics": {...}, "extra": {...},
//    "label": {"classification": "secret", ...},          src/policy/label.h, if it has one
//    "encryption": {"cipher": "AES-256-GCM", "data_key": "<32 digits>"},     if it is encrypted
//    "shards": [{"file": "shard-00000.safetensors", "bytes": N,
//                "xxh3": "<16 digits, the file's XXH3-64>",
//                "blocks": "<16 digits for each MiB of the file>",
//                "sha256": "<64 digits, the file's SHA-256>",     if provenance is written
//                "tags": "<32 digits for each MiB>"}, ...],       if it is encrypted
//    "tensors": [{"name": "wte.weight", "dtype": "F32", "shape": [V, C],
//                 "blocks": [{"shard": 0, "offset": 4096, "kind": "box"|"flat",
//                             "start": [...], "length": [...]}, ...]}, ...],
//    "seal": "sha256:<64 digits>"}             over everything before it (src/base/sealed_json.h)
//
// A reader compares the digests in `blocks`, which cover every byte. It compares neither `xxh3` nor
// `sha256`, which are for other programs such as xxhsum and for the provenance, because a digest of
// the whole file needs all bytes in order. All digests are of the bytes in the file, which may be
// encrypted (sealed_shard.h); keys.json beside the manifest has the wrapped data key. `shard` is an
// index into `shards`, `offset` is in bytes from the start of that file, and start and length form
// an Extent. Tensors are sorted bytewise by name. Each tensor and each shard has a line of its own.
// Unknown fields are ignored. A later version may change everything except the meaning of
// `version`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io/checkpoint/types.h"
#include "src/keys/block_cipher.h"

namespace trireme {

inline constexpr std::string_view kManifestFormat = "trireme-checkpoint";
// With a label, encrypted or not, so that older programs refuse what they would use without it.
inline constexpr std::int64_t kManifestVersion = 3;
inline constexpr std::int64_t kEncryptedManifestVersion = 2;
inline constexpr std::int64_t kPlainManifestVersion = 1;

struct StoredBlock {
  std::int64_t shard = 0;
  std::int64_t offset = 0;  // bytes from the start of the shard file
  Extent extent;
};

struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::vector<StoredBlock> blocks;
  std::int64_t bytes() const { return shape.elements() * size_of(dtype); }
};

struct StoredShard {
  std::string file;
  std::int64_t bytes = 0;
  std::uint64_t digest = 0;                  // XXH3 of the whole file; not compared by readers
  std::vector<std::uint64_t> block_digests;  // XXH3 of each digest block (kDigestBlockBytes)
  std::string sha256 = {};                   // of the whole file; empty if it was not computed
  std::vector<BlockTag> tags = {};           // of each digest block; empty if it is not encrypted
};

struct Manifest {
  std::string software;
  std::string created;
  std::int64_t generation = 0;
  bool read_back = false;
  CheckpointMeta meta;
  std::vector<StoredShard> shards;
  std::vector<StoredTensor> tensors;  // sorted by name
  std::string data_key = {};  // identity of the key that encrypts the shards; empty if none does
  std::string seal = {};      // set by parse_manifest(), which found it intact

  // The key itself, for readers who have it (step_key.h). Not part of the text.
  std::shared_ptr<const DataKey> key = {};

  // Returns nullptr if there is no tensor of that name.
  const StoredTensor* find(std::string_view name) const;
  std::int64_t bytes() const;  // sum over all shards
};

std::string to_text(const Manifest& manifest);
// Throws DataError that names `origin` if the text is damaged, has a newer version or contradicts
// itself.
Manifest parse_manifest(std::string_view text, const std::string& origin);

// A ShardTable lists what one rank has written: its shard, if it had any blocks, and where its
// blocks lie in it.
struct ShardTable {
  std::vector<StoredShard> shards;    // at most one
  std::vector<StoredTensor> tensors;  // contain this rank's blocks only
};
std::string to_text(const ShardTable& table);
ShardTable parse_shard_table(std::string_view text, const std::string& origin);

// Joins the tables of all ranks, in rank order, into shards and tensors of `manifest`. Throws
// InternalError if the blocks of a tensor do not tile it.
void merge_tables(std::vector<ShardTable> tables, Manifest& manifest);

}  // namespace trireme
