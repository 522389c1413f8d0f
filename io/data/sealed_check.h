// SealedCheck decrypts an encrypted shard as its blocks are read for their digests, and checks that
// every block opens, and the digest of the plain file. What HDF5 has in it was checked when it was
// packed, and nobody without the key has changed it since. For one thread. Private to io/data.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io/data/dataset_manifest.h"
#include "src/base/digest.h"
#include "src/keys/block_cipher.h"

namespace trireme {

class SealedCheck {
 public:
  // Borrows the arguments, except for the key.
  SealedCheck(const std::filesystem::path& path, const DataKey& key, const ShardEntry& entry);

  // Takes the next block of the file. Returns its plain bytes, or null if it does not open.
  const std::byte* see(const void* sealed, std::int64_t bytes);
  // Returns one line for each block that has its digest, but does not open.
  const std::vector<std::string>& forged() const { return forged_; }
  // Call it if all blocks were seen and opened. Throws DataError if the plain file is not the one
  // in the manifest.
  void finish();

 private:
  const std::filesystem::path& path_;
  const ShardEntry& entry_;
  BlockCipher cipher_;
  Xxh3 whole_;
  std::vector<std::byte> plain_;
  std::int64_t block_ = 0;
  std::vector<std::string> forged_;
};

}  // namespace trireme
