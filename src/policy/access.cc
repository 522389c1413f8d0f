#include "src/policy/access.h"

#include <algorithm>
#include <cerrno>

#include <fmt/ranges.h>
#include <fnmatch.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/policy/root_file.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

std::string named(const Request& request) {
  return fmt::format("{} {}", word_of(request.thing), printable(request.path.string()));
}

bool is_listed_host(const SiteDescriptor& site, const std::string& host) {
  const std::string short_name = host.substr(0, host.find('.'));
  return site.hosts.empty() ||
         std::any_of(site.hosts.begin(), site.hosts.end(), [&](const std::string& pattern) {
           return ::fnmatch(pattern.c_str(), host.c_str(), 0) == 0 ||
                  ::fnmatch(pattern.c_str(), short_name.c_str(), 0) == 0;
         });
}

// Returns what the site itself forbids, whatever the role, or "".
std::string against_site(const Policy& policy, const HostFacts& facts, const FilePlace& place) {
  const SiteDescriptor& site = policy.site;
  if (!is_listed_host(site, facts.host)) {
    return fmt::format("the host {} is not one of this site (site.hosts)", facts.host);
  }
  const auto is_it = [&](const fs::path& mount) { return mount == place.mount; };
  if (!site.mounts.empty() && std::none_of(site.mounts.begin(), site.mounts.end(), is_it)) {
    return fmt::format("it lies in {} on the file system {}, which is not one of site.mounts",
                       printable(place.path.string()), printable(place.mount.string()));
  }
  return "";
}

// Returns why data may not be used any more, or "". The day on which root wrote the policy is the
// only one that a user can't have chosen and that is over for certain.
std::string against_retention(const HostFacts& facts, const std::string& retention) {
  if (!retention.empty() && facts.today < facts.policy_day) {
    return fmt::format(
        "it may be used until {}, and the clock of this host, at {}, is behind: the "
        "policy was written on {}; set the clock",
        retention, facts.today, facts.policy_day);
  }
  if (!retention.empty() && retention < facts.today) {
    return fmt::format("its retention has ended on {}: erase it (trireme erase)", retention);
  }
  return "";
}

// Returns what the label forbids, or "".
std::string against_label(const Policy& policy, const HostFacts& facts, const Request& request) {
  if (!request.label) {
    return policy.refuses_unlabelled
               ? fmt::format("it has no label, and the site demands one (unlabelled: refuse): {}",
                             request.thing == Thing::dataset
                                 ? "pack it again with --label"
                                 : "train it again on data with a label, or import it with --label")
               : "";
  }
  const Label& label = *request.label;
  if (policy.rank_of(label.classification) < 0) {
    return fmt::format("its classification '{}' is unknown here (classifications: {})",
                       printable(label.classification), fmt::join(policy.classifications, ", "));
  }
  const std::string& own = policy.site.jurisdiction;
  if (label.jurisdictions && std::find(label.jurisdictions->begin(), label.jurisdictions->end(),
                                       own) == label.jurisdictions->end()) {
    return label.jurisdictions->empty()
               ? std::string("what it was made from has no jurisdiction in common")
               : fmt::format("it may lie in the jurisdiction {} only, and this site is in {}",
                             printable(fmt::format("{}", fmt::join(*label.jurisdictions, ", "))),
                             own);
  }
  return request.deed == Deed::keys ? "" : against_retention(facts, label.retention);
}

// Returns what keeps a grant from covering the request, or "".
std::string against_grant(const Policy& policy, const Grant& grant, const Request& request,
                          const FilePlace& place) {
  if (request.label &&
      policy.rank_of(request.label->classification) > policy.rank_of(grant.highest)) {
    return fmt::format("covers up to {}, and it is {}", grant.highest,
                       request.label->classification);
  }
  if (std::none_of(grant.folders.begin(), grant.folders.end(),
                   [&](const fs::path& folder) { return lies_below(place.path, folder); })) {
    return fmt::format("does not cover {}", printable(place.path.string()));
  }
  if (request.label && !grant.owners.empty()) {
    for (const std::string& owner : request.label->owners) {
      if (std::find(grant.owners.begin(), grant.owners.end(), owner) == grant.owners.end()) {
        return fmt::format("does not cover data of the owner {}", printable(owner));
      }
    }
  }
  return "";
}

std::string join_texts(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, "; "));
}

Decision by_roles(const Policy& policy, const std::vector<HeldRole>& roles, const Request& request,
                  const FilePlace& place) {
  std::vector<std::string> reasons;
  for (const HeldRole& held : roles) {
    const auto grant = held.role->grants.find(request.deed);
    if (!role_allows(held.role->name, request.deed, request.thing) ||
        grant == held.role->grants.end()) {
      reasons.push_back(
          fmt::format("the role {} cannot {} a {}", held.role->name,
                      request.deed == Deed::keys ? "change the keys of" : word_of(request.deed),
                      word_of(request.thing)));
      continue;
    }
    const std::string lack = against_grant(policy, grant->second, request, place);
    if (lack.empty()) {
      return {true, held.role->name,
              fmt::format("the role {} ({}) may {} up to {}", held.role->name, printable(held.why),
                          request.deed == Deed::keys ? "change keys" : word_of(request.deed),
                          grant->second.highest)};
    }
    reasons.push_back(fmt::format("roles.{}.{} {}", held.role->name, word_of(request.deed), lack));
  }
  return {false, "",
          reasons.empty() ? "no role of the policy names a group or account of this user"
                          : join_texts(reasons)};
}

}  // namespace

Decision decide(const Policy& policy, const std::vector<HeldRole>& roles, const HostFacts& facts,
                const Request& request, const FilePlace& place) {
  std::string against = against_site(policy, facts, place);
  if (against.empty() && !request.label_is_unknown) {
    against = against_label(policy, facts, request);
  }
  return against.empty() ? by_roles(policy, roles, request, place)
                         : Decision{false, "", std::move(against)};
}

Access Access::of_this_host(const fs::path& file) {
  Access access;
  const std::optional<std::string> text = read_root_file(file, kMostPolicyBytes);
  if (!text) {
    return access;
  }
  access.policy_ = std::make_unique<const Policy>(parse_policy(*text, file.string()));
  access.caller_ = this_caller(*access.policy_);
  access.roles_ = roles_of(access.caller_, *access.policy_);
  utsname system{};
  if (::uname(&system) != 0) {
    throw IoError("the kernel does not tell the name of this host");
  }
  struct stat written {};
  if (::stat(file.c_str(), &written) != 0) {
    throw_errno(errno, "look at", file);
  }
  constexpr std::size_t kDayBytes = 10;
  access.facts_ = {system.nodename, utc_now().substr(0, kDayBytes),
                   utc_text(written.st_mtime).substr(0, kDayBytes)};
  return access;
}

const std::vector<std::string>& Access::classifications() const {
  return policy_ ? policy_->classifications : default_classifications();
}

Decision Access::ask(const Request& request) const {
  if (!policy_) {
    return {true, "", "this host has no policy"};
  }
  return decide(*policy_, roles_, facts_, request, place_of(request.path));
}

std::string Access::refusal(const Request& request) const {
  if (!policy_) {
    return "";
  }
  const Decision decision = ask(request);
  if (audit_) {
    audit_(decision.allowed ? kAllowedEvent : kRefusedEvent,
           {{"deed", word_of(request.deed)},
            {"thing", word_of(request.thing)},
            {"path", place_of(request.path).path.string()},
            {"label", label_json(request.label)},
            {"role", decision.role},
            {"why", decision.why},
            {"user", caller_.to_string()},
            {"policy_sha256", policy_->sha256}});
  }
  return decision.allowed
             ? ""
             : fmt::format(
                   "{}: {} may not {} it{}: {}", named(request), caller_.to_string(),
                   request.deed == Deed::keys ? "change the keys of" : word_of(request.deed),
                   request.label ? fmt::format(" ({})", request.label->to_string()) : "",
                   decision.why);
}

void Access::check(const Request& request) const { throw_refusal(refusal(request)); }

void throw_refusal(const std::string& fault) {
  if (!fault.empty()) {
    throw PolicyError(fault);
  }
}

}  // namespace trireme
