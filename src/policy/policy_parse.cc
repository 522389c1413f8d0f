// Parses the policy. Every fault names the line and says what is allowed.
#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/ranges.h>

#include "src/base/config_tree.h"
#include "src/base/digest.h"
#include "src/base/error.h"
#include "src/base/printable.h"
#include "src/policy/policy.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kRoleNames = {"trainer", "data_steward", "key_custodian", "auditor",
                                             "releaser"};
constexpr int kMostSigners = 16;

std::vector<std::string> parts_of(const std::string& key) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t dot = key.find('.'); dot != std::string::npos; dot = key.find('.', begin)) {
    parts.push_back(key.substr(begin, dot - begin));
    begin = dot + 1;
  }
  parts.push_back(key.substr(begin));
  return parts;
}

bool is_below_lexically(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] =
      std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return in_folder == folder.end();
}

class PolicyParser {
 public:
  PolicyParser(std::string_view yaml, std::string origin) : origin_(std::move(origin)) {
    policy_.sha256 = sha256_hex(yaml);
    entries_ = parse_config(yaml, origin_);
  }
  Policy parse();

 private:
  [[noreturn]] void fail(const std::string& what) const { fail_at(entry_, what); }
  [[noreturn]] void fail_at(const ConfigEntry* entry, const std::string& what) const {
    throw ConfigError(fmt::format("{}:{}: {}", origin_, entry == nullptr ? 1 : entry->line, what));
  }
  const ConfigEntry* find_entry(const std::string& key) const;
  [[noreturn]] void refuse_key(const std::string& word, const std::vector<std::string>& known,
                               std::string_view what) const;
  void read_entry(const std::vector<std::string>& parts);
  void read_root(const std::string& word);
  void read_site(const std::string& word);
  void read_release(const std::string& word);
  void read_role(const std::vector<std::string>& parts);
  void read_grant(Role& role, const std::vector<std::string>& parts);
  std::string text() const;
  std::string label_word() const;
  std::vector<std::string> texts() const;
  fs::path path_of(const std::string& text) const;
  std::vector<fs::path> paths() const;
  void check_whole() const;
  void check_role(const Role& role) const;
  void check_grant(const Role& role, Deed deed, const Grant& grant) const;
  void check_folder(const fs::path& folder, const std::string& where) const;

  std::string origin_;
  std::vector<ConfigEntry> entries_;
  const ConfigEntry* entry_ = nullptr;  // that is being read; null once all are
  bool has_version_ = false;
  Policy policy_;
};

void PolicyParser::refuse_key(const std::string& word, const std::vector<std::string>& known,
                              std::string_view what) const {
  const std::string nearest = nearest_word(word, known);
  fail(fmt::format("'{}' is no {}{}: it would allow or forbid nothing. Known: {}", printable(word),
                   what, nearest.empty() ? "" : fmt::format(" (did you mean {}?)", nearest),
                   fmt::join(known, ", ")));
}

std::string PolicyParser::text() const {
  if (entry_->value.kind != ConfigValue::Kind::scalar || entry_->value.items[0].empty()) {
    fail(fmt::format("{} needs one word", entry_->key));
  }
  return entry_->value.items[0];
}

std::string PolicyParser::label_word() const {
  if (!is_label_word(text())) {
    fail(fmt::format("{}: '{}' cannot stand in a label", entry_->key, printable(text())));
  }
  return text();
}

std::vector<std::string> PolicyParser::texts() const {
  const ConfigValue& value = entry_->value;
  const bool fits =
      value.kind == ConfigValue::Kind::list || value.kind == ConfigValue::Kind::scalar;
  if (!fits || value.items.empty()) {
    fail(fmt::format("{} needs a list of words, as in [a, b]; leave the key out if there are none",
                     entry_->key));
  }
  std::set<std::string> seen;
  for (const std::string& item : value.items) {
    if (item.empty()) {
      fail(fmt::format("{} has an empty word", entry_->key));
    }
    if (!seen.insert(item).second) {
      fail(fmt::format("{} has '{}' twice", entry_->key, printable(item)));
    }
  }
  return value.items;
}

fs::path PolicyParser::path_of(const std::string& given) const {
  const fs::path path(given);
  fs::path normal = path.lexically_normal();
  if (!normal.has_filename() && normal.has_relative_path()) {
    normal = normal.parent_path();
  }
  const bool steps_up = std::find(path.begin(), path.end(), "..") != path.end();
  if (!path.is_absolute() || steps_up || given.find('\0') != std::string::npos) {
    fail(fmt::format("{}: '{}' is not an absolute path without '..'", entry_->key,
                     printable(given)));
  }
  return normal;
}

std::vector<fs::path> PolicyParser::paths() const {
  std::vector<fs::path> all;
  for (const std::string& given : texts()) {
    all.push_back(path_of(given));
  }
  return all;
}

void PolicyParser::read_root(const std::string& word) {
  if (word == "version") {
    has_version_ = true;
    if (text() != "1") {
      fail(fmt::format("version is '{}', and this program reads version 1", printable(text())));
    }
  } else if (word == "classifications") {
    policy_.classifications = texts();
    for (const std::string& each : policy_.classifications) {
      if (!is_label_word(each)) {
        fail(fmt::format("classifications: '{}' cannot stand in a label", printable(each)));
      }
    }
  } else if (word == "unlabelled") {
    if (text() != "refuse" && text() != "allow") {
      fail(fmt::format("unlabelled is '{}', not refuse or allow", printable(text())));
    }
    policy_.refuses_unlabelled = text() == "refuse";
  } else if (word == "slurm") {
    policy_.slurm = path_of(text());
  } else {
    refuse_key(word,
               {"version", "site", "classifications", "unlabelled", "roles", "release", "slurm"},
               "key of a policy");
  }
}

void PolicyParser::read_site(const std::string& word) {
  if (word == "name") {
    policy_.site.name = text();
  } else if (word == "jurisdiction") {
    policy_.site.jurisdiction = label_word();
  } else if (word == "hosts") {
    policy_.site.hosts = texts();
  } else if (word == "mounts") {
    policy_.site.mounts = paths();
  } else {
    refuse_key(word, {"name", "jurisdiction", "hosts", "mounts"}, "key of site");
  }
}

void PolicyParser::read_release(const std::string& word) {
  ReleaseRule& rule = policy_.release ? *policy_.release : policy_.release.emplace();
  if (word == "keys") {
    rule.keys = path_of(text());
  } else if (word == "above") {
    rule.above = label_word();
  } else if (word == "signers") {
    const std::string given = text();
    const char* const end = given.data() + given.size();
    const auto [stopped, code] = std::from_chars(given.data(), end, rule.signers);
    if (code != std::errc() || stopped != end || rule.signers < 1 || rule.signers > kMostSigners) {
      fail(fmt::format("release.signers is '{}', not a number from 1 to {}", printable(given),
                       kMostSigners));
    }
  } else {
    refuse_key(word, {"keys", "signers", "above"}, "key of release");
  }
}

void PolicyParser::read_grant(Role& role, const std::vector<std::string>& parts) {
  const auto deed = std::find_if(kDeeds.begin(), kDeeds.end(),
                                 [&](Deed each) { return word_of(each) == parts[2]; });
  if (deed == kDeeds.end()) {
    refuse_key(parts[2], {"groups", "accounts", "read", "write", "export", "keys"},
               "key of a role");
  }
  if (!role_allows(role.name, *deed, Thing::dataset) &&
      !role_allows(role.name, *deed, Thing::checkpoint)) {
    fail(
        fmt::format("the role {} can never have '{}': that would undo the separation of duties; "
                    "give it to another role (docs/access.md)",
                    role.name, parts[2]));
  }
  if (parts.size() != 4) {
    fail(fmt::format("{} needs {{highest: CLASSIFICATION, folders: [...]}}", entry_->key));
  }
  Grant& grant = role.grants[*deed];
  if (parts[3] == "highest") {
    grant.highest = label_word();
  } else if (parts[3] == "folders") {
    grant.folders = paths();
  } else if (parts[3] == "owners") {
    grant.owners = texts();
  } else {
    refuse_key(parts[3], {"highest", "folders", "owners"}, "key of a grant");
  }
}

void PolicyParser::read_role(const std::vector<std::string>& parts) {
  if (std::find(kRoleNames.begin(), kRoleNames.end(), parts[1]) == kRoleNames.end()) {
    refuse_key(parts[1], kRoleNames, "role");
  }
  auto role = std::find_if(policy_.roles.begin(), policy_.roles.end(),
                           [&](const Role& each) { return each.name == parts[1]; });
  if (role == policy_.roles.end()) {
    policy_.roles.push_back({parts[1], {}, {}, {}});
    role = policy_.roles.end() - 1;
  }
  if (parts.size() == 2) {
    fail(fmt::format("roles.{} is empty: name its groups or accounts, and what it may do",
                     parts[1]));
  }
  if (parts.size() == 3 && parts[2] == "groups") {
    role->groups = texts();
  } else if (parts.size() == 3 && parts[2] == "accounts") {
    role->accounts = texts();
  } else {
    read_grant(*role, parts);
  }
}

void PolicyParser::read_entry(const std::vector<std::string>& parts) {
  const std::string& section = parts[0];
  if (section == "roles" && parts.size() >= 2 && parts.size() <= 4) {
    read_role(parts);
  } else if (section == "site" && parts.size() == 2) {
    read_site(parts[1]);
  } else if (section == "release" && parts.size() == 2) {
    read_release(parts[1]);
  } else if (parts.size() == 1 && section != "roles" && section != "site" && section != "release") {
    read_root(section);
  } else {
    fail(fmt::format("'{}' is no key of a policy", printable(entry_->key)));
  }
}

// Returns the entry of the key or, if that is a map, of the first key in it; null without either.
const ConfigEntry* PolicyParser::find_entry(const std::string& key) const {
  const auto entry = std::find_if(entries_.begin(), entries_.end(), [&](const ConfigEntry& each) {
    return each.key == key || each.key.starts_with(key + ".");
  });
  return entry == entries_.end() ? nullptr : &*entry;
}

void PolicyParser::check_folder(const fs::path& folder, const std::string& where) const {
  const std::vector<fs::path>& mounts = policy_.site.mounts;
  if (!mounts.empty() && std::none_of(mounts.begin(), mounts.end(), [&](const fs::path& mount) {
        return is_below_lexically(folder, mount);
      })) {
    fail_at(find_entry(where + ".folders"),
            fmt::format("{}: the folder {} contradicts site.mounts, none of which holds it", where,
                        printable(folder.string())));
  }
}

void PolicyParser::check_grant(const Role& role, Deed deed, const Grant& grant) const {
  const std::string where = fmt::format("roles.{}.{}", role.name, word_of(deed));
  if (grant.highest.empty()) {
    fail_at(find_entry(where),
            fmt::format("{} lacks 'highest', the highest classification that it covers", where));
  }
  if (policy_.rank_of(grant.highest) < 0) {
    fail_at(find_entry(where + ".highest"),
            fmt::format("{}: '{}' is not among the classifications ({})", where, grant.highest,
                        fmt::join(policy_.classifications, ", ")));
  }
  if (grant.folders.empty()) {
    fail_at(find_entry(where),
            fmt::format("{} lacks 'folders', where the data may lie; [/] stands for all", where));
  }
  for (const fs::path& folder : grant.folders) {
    if (folder != "/") {
      check_folder(folder, where);
    }
  }
}

void PolicyParser::check_role(const Role& role) const {
  const std::string where = "roles." + role.name;
  if (role.groups.empty() && role.accounts.empty()) {
    fail_at(find_entry(where), where + " names neither groups nor accounts, so that nobody has it");
  }
  if (role.grants.empty()) {
    fail_at(find_entry(where), where + " is granted nothing");
  }
  for (const auto& [deed, grant] : role.grants) {
    check_grant(role, deed, grant);
  }
}

void PolicyParser::check_whole() const {
  if (!has_version_) {
    fail("the policy lacks its version, as in 'version: 1'");
  }
  if (policy_.site.jurisdiction.empty()) {
    fail("the policy lacks site.jurisdiction, in which this site lies");
  }
  if (policy_.roles.empty()) {
    fail("the policy has no roles, so that nobody could do anything");
  }
  for (const Role& role : policy_.roles) {
    check_role(role);
  }
  if (!policy_.release) {
    return;
  }
  const ReleaseRule& rule = *policy_.release;
  if (rule.keys.empty()) {
    fail_at(find_entry("release"),
            "release lacks 'keys', the file with the releasers' public keys");
  }
  if (!rule.above.empty() && policy_.rank_of(rule.above) < 0) {
    fail_at(find_entry("release.above"),
            fmt::format("release.above: '{}' is not among the classifications ({})", rule.above,
                        fmt::join(policy_.classifications, ", ")));
  }
}

Policy PolicyParser::parse() {
  for (const ConfigEntry& entry : entries_) {
    entry_ = &entry;
    read_entry(parts_of(entry.key));
  }
  entry_ = nullptr;
  if (policy_.classifications.empty()) {
    policy_.classifications = default_classifications();
  }
  check_whole();
  return std::move(policy_);
}

}  // namespace

Policy parse_policy(std::string_view yaml, const std::string& origin) {
  return PolicyParser(yaml, origin).parse();
}

}  // namespace trireme
