#include "src/keys/sealed_form.h"

#include "src/base/append_file.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/base/run_text.h"
#include "src/keys/rotated_log.h"
#include "src/keys/sealed_text.h"
#include "src/keys/section_line.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

// Reads the lines of one file.
class FormReader {
 public:
  // Throws DataError, which does not name the place, if the line cannot follow those before it.
  void add(std::string_view line) {
    if (is_sealed_text(line)) {
      begin_section(parse_section_line(line));
    } else {
      add_record(line);
    }
    last_line_ = line;
  }
  SealedForm end() {
    note_end();
    return std::move(form_);
  }

 private:
  void begin_section(const SectionHead& head) {
    if (form_.sections == 0) {
      form_.previous = head.previous;
      form_.first_key = head.key;
    } else if (head.previous != digest_of_line(last_line_)) {
      throw DataError(
          "this section does not follow the line before it: lines or sections were removed, "
          "exchanged or added");
    }
    note_end();
    form_.keys.emplace(head.key);
    ++form_.sections;
    has_ended_ = false;
  }
  void add_record(std::string_view line) {
    if (form_.sections == 0) {
      throw DataError(
          "there is no section to which this record could belong: lines before it were removed");
    }
    const bool is_end = ends_section(decode_record(line));
    if (has_ended_) {
      throw DataError("this record follows the end of its section: somebody else wrote it");
    }
    has_ended_ = is_end;
  }
  void note_end() { form_.unfinished += form_.sections > 0 && !has_ended_ ? 1 : 0; }

  SealedForm form_;
  std::string_view last_line_;
  bool has_ended_ = false;  // whether the latest section has
};

}  // namespace

SealedForm read_sealed_form(std::string_view file, const std::string& origin) {
  FormReader reader;
  std::int64_t number = 0;
  for (std::size_t end = file.find('\n'); end != std::string_view::npos; end = file.find('\n')) {
    ++number;
    try {
      reader.add(file.substr(0, end));
    } catch (const DataError& error) {
      throw data_error_in(fmt::format("{}, line {}", origin, number), error);
    }
    file.remove_prefix(end + 1);
  }
  return reader.end();
}

void check_first_section(std::string_view previous, const fs::path& path) {
  if (is_rotated_log(path)) {
    return;  // the log before it was replaced
  }
  const fs::path older = rotated_log(path);
  const std::string last = !older.empty() && fs::exists(older) ? last_line_of(older) : "";
  if (previous != digest_of_line(last)) {
    throw DataError(fmt::format(
        "{}, line 1: the first section does not follow {}: sections were removed or exchanged{}",
        printable(path.string()),
        last.empty() ? "the beginning of a file" : "the end of " + printable(older.string()),
        older.empty() ? "" : ", or the log was rotated just now: then try again"));
  }
}

}  // namespace trireme
