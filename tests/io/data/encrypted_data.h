// Shared by the tests of encrypted datasets: packing with the key of a site, and manifests as
// somebody without the key could write them.
#pragma once

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "io/data/dataset_keys.h"
#include "io/data/recode.h"
#include "src/base/error.h"
#include "src/base/sealed_json.h"
#include "tests/io/data/data_fixture.h"
#include "tests/support/encrypted_files.h"

namespace trireme {

// Makes the keys of datasets as the commands do; the ring must outlive it.
inline DatasetKeyMaker key_maker(const KeyRing& ring, const RankGroup& ranks = {}) {
  return [&ring, ranks](const fs::path& folder) {
    const std::string text =
        ranks.broadcast(ranks.rank == 0 ? dataset_key_text(folder, ring) : std::string());
    const WrappedKeys wrapped = parse_wrapped_keys(text, "test");
    return std::make_shared<const FolderKey>(
        FolderKey{ring.unwrap(wrapped, "test"), wrapped.recipients});
  };
}

class EncryptedDataTest : public DataTest {
 protected:
  PackOptions sealed_options(const std::string& in, const std::string& out) const {
    PackOptions made = options(in, out);
    made.make_key = key_maker(ring_);
    return made;
  }
  // Packs two shards of several blocks, encrypted. Returns the folder.
  fs::path pack_sealed(const std::string& out = "sealed") const {
    if (!fs::exists(folder_ / "in")) {
      write_random_text("in/a.txt", 1'400'000, 1);
      write_random_text("in/b.txt", 1'300'000, 2);
    }
    PackOptions made = sealed_options("in", out);
    made.shard_bytes = 2'800'000;
    pack(made, {});
    return folder_ / out;
  }
  fs::path pack_plain(const std::string& out = "plain") const {
    PackOptions made = options("in", out);
    made.shard_bytes = 2'800'000;
    pack(made, {});
    return folder_ / out;
  }

  static nlohmann::ordered_json json_of(const fs::path& file) {
    nlohmann::ordered_json object = nlohmann::ordered_json::parse(read_file(file));
    object.erase("seal");
    return object;
  }
  static void put(const fs::path& file, const std::string& text) {
    std::ofstream(file, std::ios::binary) << text;
  }
  // Returns why the dataset can't be opened or read whole, or "".
  static std::string fault_of(const fs::path& folder, const KeyRing& ring) {
    try {
      (void)all_tokens(Dataset::open(folder, ring));
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  }

  const std::string uri_ = new_key(folder_, "site");
  const KeyRing ring_{std::vector<std::string>{uri_}};
};

}  // namespace trireme
