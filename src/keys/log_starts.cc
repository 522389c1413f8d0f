#include "src/keys/log_starts.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/keys_name.h"
#include "src/base/printable.h"
#include "src/base/run_text.h"
#include "src/keys/manifest_fields.h"
#include "src/keys/secret.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMostLogKeyBytes = std::int64_t{16} << 20;
constexpr std::string_view kLogContents = "logs";
constexpr std::size_t kRunDigits = 32;
constexpr std::size_t kMostNumberDigits = 9;

std::string random_identity() {
  std::array<unsigned char, kRunDigits / 2> bytes{};
  fill_random(bytes.data(), bytes.size());
  return hex_of_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

bool has_only(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

// The MAC of keys.json covers `contents` up to a line end, so that a label must not have one.
bool is_object_line(std::string_view text) {
  return text.size() >= 2 && text.front() == '{' && text.back() == '}' &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace

std::string contents_of(const LogStart& start) {
  return start.run.empty() ? std::string(kLogContents)
                           : fmt::format("{} {} {}{}{}", kLogContents, start.run, start.number,
                                         start.label.empty() ? "" : " ", start.label);
}

LogStart parse_log_contents(std::string_view contents, const std::string& key) {
  LogStart start{key, "", 0};
  if (contents == kLogContents) {
    return start;
  }
  const std::size_t blank = kLogContents.size();
  const std::size_t second = blank + 1 + kRunDigits;
  if (contents.size() > second + 1 && contents.starts_with(kLogContents) &&
      contents[blank] == ' ' && contents[second] == ' ') {
    start.run = contents.substr(blank + 1, kRunDigits);
    const std::string_view rest = contents.substr(second + 1);
    const std::string_view number = rest.substr(0, rest.find(' '));
    start.label = rest.substr(std::min(number.size() + 1, rest.size()));
    const bool has_form = number.size() == rest.size() || is_object_line(start.label);
    if (has_form && has_only(start.run, "0123456789abcdef") && has_only(number, "0123456789") &&
        number.size() <= kMostNumberDigits && number.front() != '0') {
      std::from_chars(number.data(), number.data() + number.size(), start.number);
      return start;
    }
  }
  throw DataError("is not the key of the logs of a run");
}

LogStarts list_log_starts(const fs::path& run) {
  LogStarts starts;
  std::error_code none;
  for (fs::directory_iterator at(run / kLogKeysFolder, none), end; !none && at != end;
       at.increment(none)) {
    const std::string key = at->path().filename().string();
    const fs::path file = at->path() / kKeysFileName;
    std::error_code absent;
    if (!fs::exists(fs::symlink_status(file, absent))) {
      continue;  // a start was killed before it had written its key
    }
    try {
      if (!fs::is_regular_file(file, absent)) {
        throw DataError("is not a file");
      }
      const WrappedKeys keys = parse_wrapped_keys(read_file(file, kMostLogKeyBytes), file.string());
      starts.all.push_back(parse_log_contents(keys.contents, key));
    } catch (const Error& error) {
      starts.damage = fmt::format("{}: {}", printable(file.string()), error.what());
    }
  }
  std::sort(starts.all.begin(), starts.all.end(), [](const LogStart& a, const LogStart& b) {
    return a.number != b.number ? a.number < b.number : a.key < b.key;
  });
  return starts;
}

void check_one_run(const LogStarts& starts, const fs::path& run) {
  for (const LogStart& start : starts.all) {
    const LogStart& first = starts.all.front();
    if (start.run != first.run) {
      const auto name = [](const LogStart& each) {
        return each.run.empty() ? std::string("of a run without an identity")
                                : "of the run " + each.run.substr(0, 8);
      };
      throw DataError(fmt::format(
          "{} holds keys of several runs: {} {}, {} {}: files of another run were put here; remove "
          "them together with their key",
          printable((run / kLogKeysFolder).string()), printable(first.key), name(first),
          printable(start.key), name(start)));
    }
  }
}

LogStart next_log_start(const LogStarts& earlier, const std::string& key) {
  if (earlier.all.empty()) {
    return {key, random_identity(), 1};
  }
  const LogStart& last = earlier.all.back();
  return last.run.empty() ? LogStart{key, "", 0}
                          : LogStart{key, last.run, last.number + 1, last.label};
}

StartKeys read_start_keys(const fs::path& run, const std::string& id) {
  const fs::path file = log_key_file(run, id);
  const std::string origin = file.string();
  StartKeys found;
  try {
    found.keys = parse_wrapped_keys(read_file(file, kMostLogKeyBytes), origin);
  } catch (const NotFound&) {
    throw DataError(
        fmt::format("{} is missing, without which nothing opens the file: it was removed, or the "
                    "file comes from another run",
                    printable(origin)));
  }
  try {
    if (found.keys.data_key != id) {
      throw DataError("has another key");
    }
    found.start = parse_log_contents(found.keys.contents, id);
  } catch (const DataError&) {
    throw DataError(
        fmt::format("{}: holds another key than that of its folder: it was exchanged or changed",
                    printable(origin)));
  }
  if (found.keys.recipients.empty()) {
    throw DataError(
        fmt::format("{}: the key was destroyed, and nothing opens the files that were "
                    "encrypted with it any more. Whoever may write there can also make it look "
                    "so: if nobody has destroyed the key, restore {} from a copy",
                    printable(origin), kKeysFileName));
  }
  return found;
}

fs::path log_key_file(const fs::path& run, const std::string& id) {
  return run / kLogKeysFolder / id / kKeysFileName;
}

}  // namespace trireme
