#include "src/study/anonymity/placed_cells.h"

#include <algorithm>

namespace trireme {
namespace {

constexpr std::string_view kWhite = " \t";

std::string_view without_blanks(std::string_view cell) {
  const std::size_t begin = std::min(cell.find_first_not_of(kWhite), cell.size());
  return cell.substr(begin, cell.find_last_not_of(kWhite) + 1 - begin);
}

}  // namespace

std::vector<TableField> columns_of_ruler(std::string_view line) {
  std::vector<TableField> columns;
  line = line.substr(0, line.find_last_not_of(kWhite) + 1);
  if (line.find_first_not_of("- ") != std::string_view::npos ||
      line.find("  ") != std::string_view::npos) {
    return columns;
  }
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) {
      columns.push_back({at, end});
    }
    at = end + 1;
  }
  return columns;
}

std::vector<std::string_view> cells_at(std::string_view line,
                                       const std::vector<TableField>& columns) {
  std::vector<std::string_view> cells;
  std::size_t at = 0;  // behind the column before
  for (const TableField& column : columns) {
    const std::string_view between =
        line.substr(std::min(at, line.size()), column.begin - std::min(at, column.begin));
    if (between.find_first_not_of(kWhite) != std::string_view::npos) {
      return {};
    }
    cells.push_back(without_blanks(
        line.substr(std::min(column.begin, line.size()), column.end - column.begin)));
    at = column.end;
  }
  const std::string_view behind = line.substr(std::min(at, line.size()));
  const bool full =
      std::any_of(cells.begin(), cells.end(), [](auto cell) { return !cell.empty(); });
  return full && behind.find_first_not_of(kWhite) == std::string_view::npos
             ? cells
             : std::vector<std::string_view>();
}

CellsBelow cells_below(std::string_view line, const std::vector<TableField>& names,
                       const std::vector<bool>& wanted) {
  constexpr std::size_t kFewest = 3;  // columns with a word in place, unless all words are
  const std::size_t last = names.empty() ? 0 : names.back().end;
  line = line.substr(0, line.find_first_of(kWhite, last));
  const auto words = aligned_fields(line, {0, line.size()}, 1, line.size());
  CellsBelow below{std::vector<std::string_view>(names.size()), true};
  std::size_t in_place = 0;
  std::size_t covered = 0;  // columns with a word
  std::size_t word = 0;
  for (std::size_t column = 0; column < names.size(); ++column) {
    const TableField& name = names[column];
    while (word < words.size() && words[word].end <= name.begin) {
      ++word;
    }
    if (word < words.size() && words[word].begin < name.end) {
      const auto& [begin, end] = words[word];
      const bool exact = begin == name.begin || end == name.end;
      below.cells[column] = line.substr(begin, end - begin);
      below.sure = below.sure && (exact || !wanted[column]);
      in_place += exact ? 1 : 0;
      ++covered;
    }
  }
  // A sentence below a table has words in place by chance, but no two blanks.
  const bool apart = line.find("  ") != std::string_view::npos;
  const bool most = 2 * in_place > names.size() &&
                    (in_place >= kFewest || (in_place > 1 && in_place == words.size()));
  const bool full = below.sure && covered == names.size();
  const bool fits = apart ? most || full : in_place == names.size();
  return fits && in_place > 0 ? below : CellsBelow();
}

}  // namespace trireme
