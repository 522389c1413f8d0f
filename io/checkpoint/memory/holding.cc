#include "io/checkpoint/memory/holding.h"

namespace trireme {

std::optional<std::size_t> step_to_give_up(const std::vector<HeldStep>& held) {
  std::optional<std::size_t> newest_whole;
  std::optional<std::size_t> newest_copied;
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (!held[i].is_whole && !held[i].is_pinned) {
      return i;
    }
    newest_whole = held[i].is_whole ? i : newest_whole;
    newest_copied = held[i].is_whole && held[i].is_copied ? i : newest_copied;
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (!held[i].is_pinned && newest_whole != i && newest_copied != i) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace trireme
