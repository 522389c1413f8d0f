#include "src/base/damaged_lines.h"

#include <fmt/format.h>

#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {

void DamagedLines::add(std::int64_t line) {
  first = count == 0 ? line : first;
  ++count;
}

std::string DamagedLines::to_text() const {
  const std::string lines = counted(count, "damaged line");
  return count == 0
             ? lines
             : fmt::format("{} ({}line {})", lines, count == 1 ? "" : "the first is ", first);
}

DamagedLines use_lines(std::string_view text, const std::function<bool(std::string_view)>& use) {
  DamagedLines damaged;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const bool is_finished = end != std::string_view::npos;
    const bool is_good = use(text.substr(0, end));
    const bool is_being_written = !is_finished && text.front() != '\0';
    if (!is_good && !is_being_written) {
      damaged.add(number);
    }
    damaged.last_is_unfinished = !is_good && is_being_written;
    text.remove_prefix(is_finished ? end + 1 : text.size());
  }
  return damaged;
}

void warn_of(const DamagedLines& lines, const std::filesystem::path& file) {
  if (lines.count > 0) {
    fmt::print(stderr, "trireme: {}: ignoring {}\n", printable(file.string()), lines.to_text());
  }
}

}  // namespace trireme
