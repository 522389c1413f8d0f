// Reads any bytes as the policy of a site, the label of a manifest, the list of mounts, the
// answers of Slurm and a release.
#include <nlohmann/json.hpp>

#include "src/base/json_fields.h"
#include "src/policy/access.h"
#include "src/policy/release.h"
#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace trireme;
  const std::string_view text = text_of(data, bytes);
  refuses_only_with<ConfigError>([&] {
    const Policy policy = parse_policy(text, "input");
    require(!policy.roles.empty() && !policy.site.jurisdiction.empty());
    for (const Role& role : policy.roles) {
      for (const auto& [deed, grant] : role.grants) {
        require(policy.rank_of(grant.highest) >= 0 && !grant.folders.empty());
        // Nobody without a role may do anything.
        require(!decide(policy, {}, {"n1", "2026-01-01", "2026-01-01"},
                        {deed, Thing::dataset, grant.folders[0], kUnlabelled},
                        {grant.folders[0], grant.folders[0]})
                     .allowed);
      }
    }
  });
  refuses_only_with<DataError>([&] {
    const std::optional<Label> label = label_of(parse_json(text));
    if (label) {
      require(label_of({{"label", nlohmann::json(to_json(*label))}}) == label);
      require(join(label, label, default_classifications()) == label);
    }
  });
  refuses_only_with<DataError>([&] {
    const std::string release = release_text(parse_release(text, "input"));
    require(release_text(parse_release(release, "text")) == release);
  });
  for (const std::filesystem::path& mount : parse_mounts(text)) {
    require(mount.is_absolute());
  }
  require(parse_job_of_pid(text) >= 0);
  refuses_only_with<PolicyError>([&] { (void)parse_job_account(text, 1, 0); });
  return 0;
}
