// Parses any bytes as the record of closed logs, which gives a record that survives a round trip,
// or a DataError. A valid seal is added first, because the parser refuses everything else at once.
// The bytes are also a log: it has the form of an encrypted one or gives a DataError; it is what a
// record of its last line says, with whatever is appended, and no longer is if it is cut.
#include "src/base/sealed_json.h"
#include "src/keys/closed_logs.h"
#include "src/keys/sealed_form.h"
#include "src/keys/sealed_text.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace trireme;

// Returns whether the text is what the record says of metrics.jsonl.
bool is_whole(const ClosedLogs& closed, std::string_view text) {
  try {
    check_not_cut({closed, 1, 1}, text, "/run", "/run/metrics.jsonl");
    return true;
  } catch (const DataError&) {
    return false;
  }
}

void cut(std::string_view text, std::size_t draw) {
  const std::size_t end = text.rfind('\n') + 1;  // 0 without a whole line
  const std::string_view whole = text.substr(0, end);
  const std::string_view line = whole.substr(0, end == 0 ? 0 : end - 1);
  const std::string last(line.substr(line.rfind('\n') + 1));
  const ClosedLogs closed{
      "", "", {{"metrics.jsonl", static_cast<std::int64_t>(end), digest_of_line(last)}}, ""};
  require(is_whole(closed, text));
  require(is_whole(closed, std::string(whole) + "more\n"));
  if (end > 0) {
    require(!is_whole(closed, whole.substr(0, draw % end)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  const std::string body(text_of(data, bytes));
  refuses_only_with<DataError>([&] { (void)parse_closed_logs(body, "input"); });
  refuses_only_with<DataError>([&] {
    const ClosedLogs closed = parse_closed_logs(seal_body(body), "input");
    const std::string text = to_text(closed);
    require(to_text(parse_closed_logs(text, "text")) == text);
    for (const ClosedFile& file : closed.files) {
      require(closed.find(file.name) != nullptr);
    }
    (void)is_whole(closed, body);
  });
  refuses_only_with<DataError>([&] {
    const SealedForm form = read_sealed_form(body, "input");
    require(form.unfinished <= form.sections);
    require(form.keys.size() <= static_cast<std::size_t>(form.sections));
  });
  cut(body, bytes == 0 ? 0 : data[0] * std::size_t{257} + bytes);
  return 0;
}
