#include "io/data/document_reading.h"

#include <algorithm>

#include "io/data/line_blocks.h"
#include "src/base/data_error_in.h"
#include "src/base/error.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::size_t kWholeBytes = std::size_t{32} << 20;
constexpr std::size_t kBinaryHead = 8192;
constexpr std::int64_t kMostObjects = std::int64_t{1} << 30;

std::string member_place(const InputFile& input, const std::string& member) {
  return fmt::format("{}: member {}", printable(input.path), printable(member));
}

// Returns the part of a member's name up to the first dot behind the last slash.
std::string key_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return name.substr(0, name.find('.', slash == std::string::npos ? 0 : slash + 1));
}

}  // namespace

// Tokens depend on the text around them, so that a document is encoded as a whole, or in parts of
// kWholeBytes that end with a line.
void DocumentReading::add_text(std::string_view block, bool is_last) {
  text_ += block;
  if (text_.size() >= kWholeBytes || (is_last && !text_.empty())) {
    to_.take(text_);
    text_.clear();
  }
}

TextFound DocumentReading::text(ByteStream& from, const std::string& place, std::int64_t start,
                                bool is_start) {
  if (inputs_.chat != nullptr) {
    throw DataError(fmt::format(
        "{}: with --messages, only JSON Lines and archives of them are read: --exclude leaves out "
        "other files",
        place));
  }
  LineBlocks blocks(from, place, false);
  TextFound found = TextFound::nothing;
  while (const auto block = blocks.next()) {
    const std::string_view head = block->text.substr(0, kBinaryHead);
    if (is_start && block->start == 0 && head.find('\0') != std::string::npos) {
      return TextFound::binary;
    }
    if (found == TextFound::nothing) {
      to_.begin_document({file_, start});
    }
    found = TextFound::text;
    add_text(block->text);
    passed_();
  }
  add_text("", true);
  return found;
}

void DocumentReading::line(std::string_view line, std::int64_t number, std::int64_t start,
                           const LineOrigin& origin) {
  if (line.find_first_not_of(" \t\r") == std::string_view::npos ||
      !inputs_.selection.takes(name_, origin.start + start)) {
    return;
  }
  put(line, origin.start + start, [&] {
    return fmt::format("{}: line {}, at byte {}", origin.place, origin.first_line() + number,
                       origin.first_byte + start);
  });
}

bool DocumentReading::leaves_out(const std::string& text, std::int64_t start) {
  const bool is_duplicate = !text.empty() && inputs_.is_removed({file_, start});
  counts.empty_documents += text.empty() ? 1 : 0;
  counts.duplicates += is_duplicate ? 1 : 0;
  return text.empty() || is_duplicate;
}

void DocumentReading::put(std::string_view object, std::int64_t start,
                          const std::function<std::string()>& where) {
  if (inputs_.chat == nullptr) {
    std::string text;
    try {
      text = line_text_.text_in(object);
    } catch (const DataError& error) {
      throw data_error_in(where(), error);
    }
    if (!leaves_out(text, start)) {
      to_.begin_document({file_, start});
      to_.take(text);
      to_.end_document(true);
    }
    return;
  }
  RenderedChat chat;
  try {
    chat = inputs_.chat->render_line(object, inputs_.field);
  } catch (const DataError& error) {
    throw data_error_in(where(), error);
  }
  if (!leaves_out(chat.text, start)) {
    to_.begin_document({file_, start});
    to_.take_chat(chat);
    to_.end_document(true);
  }
}

void DocumentReading::lines(ByteStream& from, const LineOrigin& origin) {
  LineBlocks blocks(from, origin.place, true);
  std::int64_t number = 0;
  while (const auto block = blocks.next()) {
    for (std::size_t at = 0; at < block->text.size(); ++number) {
      const std::size_t newline = std::min(block->text.find('\n', at), block->text.size());
      line(block->text.substr(at, newline - at), number,
           block->start + static_cast<std::int64_t>(at), origin);
      at = newline + 1;
    }
    passed_();
  }
}

void DocumentReading::keep_object(const TarMember& member, TarReader& archive, Group& group) const {
  if (member.bytes > kMostObjects - group.object_bytes) {
    throw DataError(fmt::format(
        "{}: the .json members of one group have more than 1 GiB: use .jsonl members for many "
        "documents",
        member_place(input_, member.name)));
  }
  group.object_bytes += member.bytes;
  // The memory grows with what is there, not with what the header claims.
  constexpr std::int64_t kAtOnce = std::int64_t{1} << 20;
  std::string text;
  for (std::int64_t got = kAtOnce; got == kAtOnce;) {
    const std::size_t old = text.size();
    text.resize(old + static_cast<std::size_t>(kAtOnce));
    got = read_fully(archive, text.data() + old, kAtOnce);
    text.resize(old + static_cast<std::size_t>(got));
  }
  group.objects.push_back({member.name, member.offset, std::move(text)});
}

void DocumentReading::member(const TarMember& member, TarReader& archive, Group& group) {
  const std::string& name = member.name;
  const std::string place = member_place(input_, name);
  if (member.is_file && name.ends_with(".txt")) {
    group.has_text = true;
    if (!group.is_taken) {
      return;
    }
    if (inputs_.is_removed({file_, member.offset})) {
      ++counts.duplicates;
      return;
    }
    const TextFound found = text(archive, place, member.offset, true);
    if (found == TextFound::text) {
      to_.end_document(true);
    }
    counts.binary_files += found == TextFound::binary ? 1 : 0;
    counts.empty_documents += found == TextFound::nothing ? 1 : 0;
  } else if (member.is_file && name.ends_with(".json")) {
    if (group.is_taken) {
      keep_object(member, archive, group);
    }
  } else if (member.is_file && (name.ends_with(".jsonl") || name.ends_with(".ndjson"))) {
    lines(archive, {.place = place, .start = member.offset});
  } else {
    ++counts.skipped_members;
  }
}

void DocumentReading::end_group(Group& group) {
  for (const auto& [name, start, object] : group.objects) {
    if (group.has_text) {
      ++counts.skipped_members;
      continue;
    }
    put(object, start, [&, name = name] { return member_place(input_, name); });
  }
  group = {};
}

void DocumentReading::archive(ByteStream& from) {
  TarReader archive(from, printable(input_.path));
  Group group;
  bool is_first = true;
  while (const auto found = archive.next()) {
    std::string key = key_of(found->name);
    if (is_first || key != group.key) {
      end_group(group);
      group.key = std::move(key);
      group.is_taken = inputs_.selection.takes(name_, found->offset);
    }
    is_first = false;
    member(*found, archive, group);
    passed_();
  }
  end_group(group);
}

}  // namespace trireme
