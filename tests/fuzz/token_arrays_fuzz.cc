// Reads any bytes as an index of Megatron-LM and as an array of NumPy, with the tokens and offsets
// that they claim. Each may be refused with a DataError.
#include <fstream>

#include "io/data/document_ends.h"
#include "io/data/foreign_file.h"
#include "io/data/megatron_index.h"
#include "io/data/npy_header.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/support/temp_folder.h"

namespace {

using namespace trireme;

void write(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

// Reads all tokens and documents of a file that was accepted.
void read_foreign(const ForeignInput& input) {
  const std::unique_ptr<ForeignFile> file = open_foreign_file(input, {"/tokens", ""});
  file->check_documents();
  ForeignArray& tokens = file->tokens();
  constexpr std::int64_t kAtOnce = 1000;
  std::vector<std::int64_t> read(static_cast<std::size_t>(kAtOnce));
  for (std::int64_t at = 0; at < tokens.size() && at < 10 * kAtOnce; at += kAtOnce) {
    tokens.read(at, std::min(kAtOnce, tokens.size() - at), read.data());
    require(!file->place_of(at).empty());
  }
  DocumentEnds ends(file->offsets(), tokens.size() / 2);
  for (int i = 0; i < 100 && ends.next() != DocumentEnds::kNone; ++i) {
    require(ends.next() > tokens.size() / 2 && ends.next() <= tokens.size());
    ends.pass(ends.next());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  static const TempFolder folder;
  const std::string_view text = text_of(data, bytes);
  const std::string idx = folder.path() / "x.idx";
  const std::string bin = folder.path() / "x.bin";
  const std::string npy = folder.path() / "x.npy";
  write(idx, text);
  // The tokens that the index claims, if they are few.
  std::int64_t claimed = 10;
  refuses_only_with<DataError>([&] {
    const File file = File::open_to_read(idx);
    const MegatronIndex index(file, claimed);
    for (std::int64_t size = 0; size < 64; ++size) {
      refuses_only_with<DataError>([&] {
        MegatronIndex(file, size).check_all();
        claimed = size;
      });
    }
  });
  write(bin, std::string(static_cast<std::size_t>(claimed), '\1'));
  refuses_only_with<DataError>([&] { read_foreign({{idx, "x.idx"}, InputFile{bin, "x.bin"}}); });
  write(npy, text);
  refuses_only_with<DataError>([&] { read_foreign({{npy, "x.npy"}, std::nullopt}); });
  refuses_only_with<DataError>([&] { read_foreign({{npy, "x.npy"}, InputFile{npy, "x.npy"}}); });
  return 0;
}
