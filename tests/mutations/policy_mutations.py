"""Mutations of policies and labels, which tests/policy must find."""

from mutation import POLICY, Mutation

ACCESS = "src/policy/access.cc"
PARSE = "src/policy/policy_parse.cc"
ROOT_FILE = "src/policy/root_file.cc"
LABEL = "src/policy/label.cc"
PLACE = "src/policy/file_place.cc"
CALLER = "src/policy/caller.cc"

POLICIES = [
    Mutation(
        "policy_host", "the host is one of the site", ACCESS,
        "  if (!is_listed_host(site, facts.host)) {\n", "  if (false) {\n",
        "DecisionTest.RefusesOtherHosts", POLICY),
    Mutation(
        "policy_mount", "the file system is one of the site", ACCESS,
        "  if (!site.mounts.empty() && std::none_of(", "  if (false && std::none_of(",
        "DecisionTest.RefusesOtherFileSystems", POLICY),
    Mutation(
        "policy_unlabelled", "data has a label", ACCESS,
        "    return policy.refuses_unlabelled\n", "    return false\n",
        "DecisionTest.RefusesDataWithoutALabelUnlessAllowed", POLICY),
    Mutation(
        "policy_unknown", "the classification is known", ACCESS,
        "  if (policy.rank_of(label.classification) < 0) {\n", "  if (false) {\n",
        "DecisionTest.RefusesHigherClassifications", POLICY),
    Mutation(
        "policy_jurisdiction", "the site is in a jurisdiction of the label", ACCESS,
        "  if (label.jurisdictions && std::find(", "  if (false && std::find(",
        "DecisionTest.RefusesOtherJurisdictions", POLICY),
    Mutation(
        "policy_retention", "the retention has not ended", ACCESS,
        "  if (!retention.empty() && retention < facts.today) {\n",
        "  if (false) {\n", "DecisionTest.RefusesAfterTheRetention", POLICY),
    Mutation(
        "policy_clock", "the clock is not behind the policy", ACCESS,
        "  if (!retention.empty() && facts.today < facts.policy_day) {\n",
        "  if (false) {\n",
        "DecisionTest.RefusesToJudgeARetentionByAClockThatIsBehindThePolicy", POLICY),
    Mutation(
        "policy_highest", "a grant covers the classification", ACCESS,
        "      policy.rank_of(request.label->classification) > policy.rank_of(grant.highest)) {\n",
        "      false) {\n", "DecisionTest.RefusesHigherClassifications", POLICY),
    Mutation(
        "policy_folder", "a grant covers the folder", ACCESS,
        "  if (std::none_of(grant.folders.begin(), grant.folders.end(),\n",
        "  if (false && std::none_of(grant.folders.begin(), grant.folders.end(),\n",
        "DecisionTest.RefusesOtherFolders", POLICY),
    Mutation(
        "policy_folder_parts", "folders are compared part by part", PLACE,
        "  return in_folder == folder.end();\n",
        "  return path.native().starts_with(folder.native());\n",
        "DecisionTest.RefusesOtherFolders", POLICY),
    Mutation(
        "policy_owner", "a grant covers every owner", ACCESS,
        "  if (request.label && !grant.owners.empty()) {\n", "  if (false) {\n",
        "DecisionTest.RefusesOtherOwners", POLICY),
    Mutation(
        "policy_deed", "what no grant names is refused", ACCESS,
        "        grant == held.role->grants.end()) {\n",
        "        grant == held.role->grants.end()) {\n"
        "      return {true, held.role->name, \"\"};\n",
        "DecisionTest.RefusesWhatNoRoleMay", POLICY),
    Mutation(
        "policy_thing", "the role may do this to such things", ACCESS,
        "    if (!role_allows(held.role->name, request.deed, request.thing) ||\n", "    if (\n",
        "DecisionTest.SeparatesDatasetsFromCheckpoints", POLICY),
    Mutation(
        "policy_duties", "no grant undoes the separation of duties", PARSE,
        "  if (!role_allows(role.name, *deed, Thing::dataset) &&\n", "  if (false &&\n",
        "Policy.RefusesContradictions", POLICY),
    Mutation(
        "policy_path", "a folder has no '..'", PARSE, "!path.is_absolute() || steps_up ||",
        "!path.is_absolute() ||", "Policy.RefusesHostileYaml", POLICY),
    Mutation(
        "policy_twice", "a list has no word twice", PARSE,
        "    if (!seen.insert(item).second) {\n", "    if (false) {\n",
        "Policy.RefusesContradictions", POLICY),
    Mutation(
        "policy_version", "the version is known", PARSE, "    if (text() != \"1\") {\n",
        "    if (false) {\n", "Policy.RefusesWhatIsMissing", POLICY),
    Mutation(
        "policy_known_words", "a misspelt word is refused", PARSE,
        "  } else {\n    refuse_key(word, {\"name\", \"jurisdiction\", \"hosts\", \"mounts\"}, "
        "\"key of site\");\n", "  } else {\n", "Policy.NamesTheLineOfAMistypedWord", POLICY),
    Mutation(
        "policy_signers", "the number of signers is a number from 1", PARSE,
        "rule.signers < 1 ||", "false ||", "Policy.NamesTheLineOfAMistypedWord", POLICY),
    Mutation(
        "policy_grant_mount", "a grant lies on a file system of the site", PARSE,
        "  if (!mounts.empty() && std::none_of(", "  if (false && std::none_of(",
        "Policy.RefusesContradictions", POLICY),
    Mutation(
        "policy_file_owner", "the policy belongs to root", ROOT_FILE,
        "  if (status.st_uid != 0) {\n", "  if (false) {\n", "RootFileTest.RefusesOtherOwners",
        POLICY),
    Mutation(
        "policy_file_group", "no group can write the policy", ROOT_FILE,
        "(status.st_mode & (S_IWGRP | S_IWOTH)) != 0", "(status.st_mode & S_IWOTH) != 0",
        "RootFileTest.RefusesWhatOthersCanWrite", POLICY),
    Mutation(
        "policy_file_others", "nobody else can write the policy", ROOT_FILE,
        "(status.st_mode & (S_IWGRP | S_IWOTH)) != 0", "(status.st_mode & S_IWGRP) != 0",
        "RootFileTest.RefusesWhatOthersCanWrite", POLICY),
    Mutation(
        "policy_file_folders", "nobody else can change the folders above the policy", ROOT_FILE,
        "    check_owner(status_of(at.get(), whole), whole);\n", "",
        "RootFileTest.RefusesFoldersThatOthersCanChange", POLICY),
    Mutation(
        "policy_file_link", "no part of the policy's path is a symbolic link", ROOT_FILE,
        "O_NOFOLLOW | O_NONBLOCK", "O_NONBLOCK", "RootFileTest.RefusesSymbolicLinks", POLICY),
    Mutation(
        "policy_file_kind", "the policy is a regular file", ROOT_FILE,
        "  if (!S_ISREG(status.st_mode)) {\n", "  if (false) {\n",
        "RootFileTest.RefusesWhatIsNoFile", POLICY),
    Mutation(
        "policy_file_size", "the policy has a limited size", ROOT_FILE,
        "  if (std::ssize(text) > most_bytes) {\n", "  if (false) {\n",
        "RootFileTest.RefusesLargeFiles", POLICY),
    Mutation(
        "policy_real_place", "symbolic links are followed to where data lies", PLACE,
        "    at = fs::weakly_canonical(at, code);\n", "    at = at.lexically_normal();\n",
        "FilePlace.FollowsSymbolicLinks", POLICY),
    Mutation(
        "policy_job_owner", "the job of this process belongs to its user", CALLER,
        "line.substr(0, blank) != std::to_string(uid)", "false",
        "Caller.RefusesTheJobOfAnotherUser", POLICY),
    Mutation(
        "policy_group", "a group of the policy exists", CALLER, "      if (!number) {\n",
        "      if (!number) {\n        continue;\n", "Caller.RefusesGroupsThatDoNotExist", POLICY),
    Mutation(
        "label_classification", "a join has the higher classification", LABEL,
        "  return place(a) < place(b) ? b : a;\n", "  return place(a) < place(b) ? a : b;\n",
        "Label.JoinRestrictsAsMuchAsBoth", POLICY),
    Mutation(
        "label_jurisdictions", "a join has the jurisdictions of both", LABEL,
        "    std::set_intersection(a->jurisdictions", "    std::set_union(a->jurisdictions",
        "Label.JoinRestrictsAsMuchAsBoth", POLICY),
    Mutation(
        "label_owners", "a join has all owners", LABEL, "  std::set_union(a->owners",
        "  std::set_intersection(a->owners", "Label.JoinRestrictsAsMuchAsBoth", POLICY),
    Mutation(
        "label_retention", "a join has the earlier end", LABEL,
        ": std::min(a->retention, b->retention)", ": std::max(a->retention, b->retention)",
        "Label.JoinTakesTheEarlierEnd", POLICY),
    Mutation(
        "label_unknown_field", "a restriction that is not known is not dropped", LABEL,
        "        key != \"retention\") {\n", "        false) {\n", "Label.RefusesDamagedJson",
        POLICY),
    Mutation(
        "label_words", "a label has no control characters", LABEL,
        "    return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.' || c == ' ';\n",
        "    return true;\n", "Label.RefusesWrongWords", POLICY),
    Mutation(
        "release_digest", "a release names a manifest", "src/policy/release.cc",
        "    if (release.manifest_sha256.size() != kDigestDigits) {\n", "    if (false) {\n",
        "Release.RefusesDamage", POLICY),
]
