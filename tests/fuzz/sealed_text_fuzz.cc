// Opens any bytes as an encrypted log, which gives text or a DataError. The bytes are also what
// follows the beginning of a section that is authentic, and what is encrypted: then one byte of the
// file is changed or the file is cut, and it gives a part of the text, or a DataError. What opens
// also has the form that can be checked without the key.
#include <algorithm>
#include <memory>

#include "src/keys/sealed_form.h"
#include "src/keys/sealed_text.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

void has_form_of(const trireme::OpenedText& opened, std::string_view file) {
  try {
    const trireme::SealedForm form = trireme::read_sealed_form(file, "input");
    trireme::require(form.sections == opened.sections && form.unfinished == opened.unfinished &&
                     form.first_key == opened.first_key && form.previous == opened.previous);
  } catch (const trireme::DataError&) {
    trireme::require(false);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  static const auto key = std::make_shared<const DataKey>(Secret(DataKey::kBytes));
  const std::string text(text_of(data, bytes));
  const auto open = [](std::string_view file) {
    OpenedText opened = open_sealed_text(
        file, "f", [](const std::string&) -> const DataKey& { return *key; }, "input");
    has_form_of(opened, file);
    return opened;
  };
  refuses_only_with<DataError>([&] { (void)open(text); });
  SectionSealer sealer(key, "f");
  const std::string head = sealer.begin(text);
  refuses_only_with<DataError>([&] { require(open(head + text).text.empty()); });

  const std::size_t half = bytes / 2;
  std::string file = head;
  file += sealer.seal(text.substr(0, half));
  file += sealer.seal(text.substr(half));
  file += sealer.end();
  require(open(file).text == text && open(file).unfinished == 0);
  const std::size_t at = bytes == 0 ? 0 : (data[0] * std::size_t{257}) % file.size();
  require(text.starts_with(open(file.substr(0, at)).text));
  file[at] = static_cast<char>(static_cast<unsigned char>(file[at]) ^ (1U << (bytes % 8)));
  refuses_only_with<DataError>([&] { require(text.starts_with(open(file).text)); });
  return 0;
}
