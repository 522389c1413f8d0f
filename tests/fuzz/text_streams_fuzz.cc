// Reads any bytes as a compressed file, as an archive of tar, and as a file of texts that `data
// pack` reads: gzip, zstd or plain, with lines or members. Each may be refused with a DataError.
#include <algorithm>
#include <fstream>

#include "io/archive/decompression.h"
#include "io/archive/tar_reader.h"
#include "io/data/text_reading.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_folder.h"

namespace {

using namespace trireme;

constexpr DecompressionLimits kFuzzLimits = {
    .ratio = 100, .free_bytes = std::int64_t{1} << 20, .window_log = 20};

class BytesStream final : public ByteStream {
 public:
  explicit BytesStream(std::string_view bytes) : left_(bytes) {}
  std::int64_t read(char* to, std::int64_t bytes) override {
    const std::size_t some = std::min(static_cast<std::size_t>(bytes), left_.size());
    std::copy_n(left_.data(), some, to);
    left_.remove_prefix(some);
    return static_cast<std::int64_t>(some);
  }

 private:
  std::string_view left_;
};

std::int64_t drained(ByteStream& from) {
  std::string some(5000, '\0');
  std::int64_t bytes = 0;
  while (const std::int64_t got = from.read(some.data(), std::ssize(some))) {
    bytes += got;
  }
  return bytes;
}

void read_archive(ByteStream& from) {
  TarReader archive(from, "input");
  bool reads = true;
  while (const auto member = archive.next()) {
    require(member->bytes >= 0);
    require(!reads || drained(archive) == member->bytes);
    reads = !reads;
  }
}

class NoSink final : public TextSink {
 public:
  void take(std::string_view text) override { require(!text.empty()); }
  void end_document(bool /*is_whole*/) override {}
};

void read_as_file(const std::filesystem::path& path, std::int64_t bytes) {
  const std::vector<InputFile> files = {{path.string(), path.filename().string(), bytes}};
  const Selection all;
  NoSink sink;
  const TextInputs inputs{files, all, "text"};
  std::int64_t passed = 0;
  for (const TextShard& shard : plan_shards(files, all, std::int64_t{1} << 20)) {
    (void)read_texts(inputs, shard, sink, [&](std::int64_t some) { passed += some; });
  }
  require(passed <= bytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const TempFolder folder;
  const std::string_view text = text_of(data, bytes);
  for (const Compression compression : {Compression::gzip, Compression::zstd}) {
    refuses_only_with<DataError>([&] {
      BytesStream from(text);
      const std::int64_t most = kFuzzLimits.free_bytes + 5000 +
                                kFuzzLimits.ratio * static_cast<std::int64_t>(text.size());
      require(drained(*decompress(from, compression, "input", kFuzzLimits)) <= most);
    });
    refuses_only_with<DataError>([&] {
      BytesStream from(text);
      read_archive(*decompress(from, compression, "input", kFuzzLimits));
    });
  }
  refuses_only_with<DataError>([&] {
    BytesStream from(text);
    read_archive(from);
  });
  for (const char* name : {"a.txt", "a.jsonl", "a.tar", "a.tgz"}) {
    const std::filesystem::path path = folder.path() / name;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
    refuses_only_with<DataError>([&] { read_as_file(path, std::ssize(text)); });
  }
  return 0;
}
