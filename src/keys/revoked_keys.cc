#include "src/keys/revoked_keys.h"

#include <algorithm>
#include <system_error>

#include "src/base/config_binder.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/file_writers.h"
#include "src/base/printable.h"

namespace trireme {
namespace {

constexpr std::int64_t kMostRevokedBytes = 1 << 20;
constexpr const char* kBlanks = " \t\r";

bool is_identity(std::string_view text) {
  constexpr std::size_t kDigits = 32;
  constexpr std::size_t kTokenDigits = 64;
  return (text.size() == kDigits || text.size() == kTokenDigits) &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(kBlanks), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::vector<RevokedKey> revoked_keys_in(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kRevokedKeysName;
  refuse_if_all_can_write(path, "take back what it revokes");
  try {
    return parse_revoked_keys(read_file(path, kMostRevokedBytes), path.string());
  } catch (const NotFound&) {
    std::error_code unknown;
    if (std::filesystem::is_symlink(std::filesystem::symlink_status(path, unknown))) {
      throw PolicyError(fmt::format(
          "nobody knows which keys are revoked: {} is a symbolic link to a file that does not "
          "exist; correct or remove it",
          printable(path.string())));
    }
    return {};
  } catch (const PolicyError&) {
    throw;
  } catch (const Error& error) {
    throw PolicyError(fmt::format("nobody knows which keys are revoked: {}", error.what()));
  }
}

}  // namespace

std::vector<RevokedKey> parse_revoked_keys(std::string_view text, const std::string& origin) {
  std::vector<RevokedKey> revoked;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = without_blanks(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) {
      continue;
    }
    const std::string_view key = line.substr(0, line.find_first_of(kBlanks));
    if (!is_identity(key)) {
      throw PolicyError(
          fmt::format("{}:{}: '{}' is not the identity of a key, which has 32 or 64 "
                      "hexadecimal digits (`trireme keys list` prints it): correct it, because it "
                      "would revoke nothing",
                      origin, number, printable(key)));
    }
    revoked.push_back({std::string(key), std::string(without_blanks(line.substr(key.size())))});
  }
  return revoked;
}

std::vector<RevokedKey> site_revoked_keys(const std::filesystem::path& host_folder) {
  std::vector<RevokedKey> revoked = revoked_keys_in(host_folder);
  const std::filesystem::path site = site_folder();
  if (site != host_folder) {
    const std::vector<RevokedKey> more = revoked_keys_in(site);
    revoked.insert(revoked.end(), more.begin(), more.end());
  }
  return revoked;
}

const RevokedKey* find_revoked(const std::vector<RevokedKey>& revoked, const std::string& key) {
  const auto found = std::find_if(revoked.begin(), revoked.end(),
                                  [&](const RevokedKey& each) { return each.key == key; });
  return found == revoked.end() ? nullptr : &*found;
}

std::string text_of_revoked(const RevokedKey& key) {
  return key.reason.empty() ? "is revoked" : fmt::format("is revoked ({})", printable(key.reason));
}

}  // namespace trireme
