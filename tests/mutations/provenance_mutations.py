"""Mutations of signatures, provenance and lineage, which tests/evidence and tests/lineage must
find."""

from mutation import EVIDENCE, LINEAGE, Mutation

BUNDLE = "src/evidence/bundle.cc"
ENVELOPE = "src/evidence/envelope.cc"
NAMED = "src/evidence/named_files.cc"
FOLDER = "src/evidence/folder_check.cc"
SUBJECT = "src/evidence/subject_json.cc"
TRUST = "src/evidence/trust_file.cc"
CERTIFICATE = "src/evidence/certificate.cc"
LIST = "src/evidence/digest_list.cc"
RECORD = "src/lineage/audit_record.cc"
PARENTS = "src/lineage/lineage_walk_parents.cc"
STEPS = "src/lineage/lineage_walk_steps.cc"
WALK = "src/lineage/lineage_walk.cc"

SIGNATURES = [
    Mutation(
        "signature_type", "the type of a payload is signed", ENVELOPE,
        "payload_type.size(), payload_type, body", "std::size_t{0}, \"\", body",
        "Envelope.TellsWhoHasSigned", EVIDENCE),
    Mutation(
        "signature_forged", "a signature that is not that of the named key is no other's", ENVELOPE,
        "      if (!is_good && signature.key_id == id) {\n", "      if (false) {\n",
        "Envelope.TellsWhoHasSigned", EVIDENCE),
    Mutation(
        "signature_good", "only a key that fits its signature has signed", ENVELOPE,
        "      if (!is_good) {\n        continue;\n      }\n", "",
        "Envelope.TellsWhoHasSigned", EVIDENCE),
    Mutation(
        "signature_revoked", "a key that was revoked does not count", ENVELOPE,
        "      if (key.revoked && !key.counts_at(", "      if (false && !key.counts_at(",
        "Envelope.OfARevokedKeyDoesNotCount", EVIDENCE),
    Mutation(
        "signature_twice", "no two signatures have one name", ENVELOPE,
        "    if (std::any_of(envelope.signatures.begin()",
        "    if (false && std::any_of(envelope.signatures.begin()",
        "Envelope.RefusesTwoSignaturesWithOneName", EVIDENCE),
    Mutation(
        "signature_many", "an envelope has a limited number of signatures", ENVELOPE,
        "  if (signatures.size() > kMostSignatures) {\n", "  if (false) {\n",
        "Envelope.HasALimitedNumberOfSignatures", EVIDENCE),
    Mutation(
        "trust_weak_key", "no key is trusted for which anyone can sign", TRUST,
        "  if (key->is_weak()) {\n", "  if (false) {\n",
        "Keys.ATrustFileHasNoKeyForWhichAnyoneCanSign", EVIDENCE),
    Mutation(
        "trust_time", "a revoked key counts for what states an earlier time only", TRUST,
        "!revoked->since.empty() && is_utc_time(time) && time < revoked->since",
        "true", "TrustFile.CountsSignaturesByTheTimeThatTheyState", EVIDENCE),
    Mutation(
        "trust_misspelt", "a misspelt revocation is refused", TRUST,
        "  if (!is_utc_time(when)) {\n",
        "  if (false) {\n", "TrustFile.MisspeltRevocationsAreRefused", EVIDENCE),
    Mutation(
        "trust_revoked_once", "a revocation counts for every entry of its key", TRUST,
        "    if (key.revoked) {\n", "    if (false) {\n",
        "TrustFile.ARevocationCountsForEveryEntryOfItsKey", EVIDENCE),
    Mutation(
        "trust_private", "a private key is no trust file", TRUST,
        "  if (text.find(\"PRIVATE KEY-----\") != std::string_view::npos) {\n", "  if (false) {\n",
        "Keys.ATrustFileHasNothingElse", EVIDENCE),
]

STATEMENTS = [
    Mutation(
        "bundle_form", "a line is written as Trireme writes it", BUNDLE,
        "  if (to_text(envelope) != fmt::format(\"{}\\n\", line)) {\n", "  if (false) {\n",
        "BundleTest.FindsChangedLines", EVIDENCE),
    Mutation(
        "bundle_type", "a line holds a statement", BUNDLE,
        "  if (envelope.payload_type != kStatementType) {\n", "  if (false) {\n",
        "BundleTest.FindsChangedLines", EVIDENCE),
    Mutation(
        "bundle_named_key", "a line names the key that has signed it", BUNDLE,
        "  if (!signature.are_named) {\n", "  if (false) {\n", "BundleTest.FindsChangedLines",
        EVIDENCE),
    Mutation(
        "bundle_cut", "the last line is whole", BUNDLE,
        "      throw DataError(fmt::format(\"{} ends within line {}: it was cut\", origin, "
        "number));\n", "      break;\n", "BundleTest.FindsChangedLines", EVIDENCE),
    Mutation(
        "bundle_parent", "each line is about the parent of the line before it", BUNDLE,
        "    if (number > 1 && !continues(", "    if (false && !continues(",
        "BundleTest.FindsChangedLines", EVIDENCE),
    Mutation(
        "bundle_lines", "a bundle has a limited number of lines", BUNDLE,
        "    if (number > kMostAncestors + 1) {\n", "    if (false) {\n",
        "BundleTest.HasALimitedNumberOfLines", EVIDENCE),
    Mutation(
        "subject_inside", "a statement names files of its folder only", SUBJECT,
        "    if (name.empty() || name == \".\" || name == \"..\") {\n", "    if (false) {\n",
        "Statement.RefusesNamesThatLeadOutOfTheFolder", EVIDENCE),
    Mutation(
        "subject_digest", "a digest is 64 lowercase digits", SUBJECT,
        "  if (!is_sha256(digest)) {\n", "  if (false) {\n", "Statement.RefusesWhatIsNoStatement",
        EVIDENCE),
    Mutation(
        "subject_type", "a statement is of the kind that is expected", SUBJECT,
        "      text_field(statement, \"predicateType\") != predicate_type) {\n", "      false) {\n",
        "Certificate.IsNoProvenanceAndProvenanceIsNoCertificate", EVIDENCE),
    Mutation(
        "subject_none", "a statement is about files", SUBJECT, "  if (subjects.empty()) {\n",
        "  if (false) {\n", "Statement.RefusesWhatIsNoStatement", EVIDENCE),
    Mutation(
        "folder_signed", "a folder without a statement is refused", FOLDER,
        "    add_fault(check, ExitCode::refused,\n"
        "              fmt::format(\"{} has no {}: nothing",
        "    (void)(\n              fmt::format(\"{} has no {}: nothing",
        "FolderCheckTest.FindsAMissingStatement", EVIDENCE),
    Mutation(
        "folder_signatures", "the signature of a statement is checked", FOLDER,
        "  check_signatures(check.statements, 0, bundle, check);\n", "",
        "FolderCheckTest.FindsOtherSigners", EVIDENCE),
    Mutation(
        "folder_added", "a file that was added is found", NAMED,
        "    } else if (!holds(names, file)) {\n", "    } else if (false) {\n",
        "FolderCheckTest.FindsAddedFiles", EVIDENCE),
    Mutation(
        "folder_added_folder", "a folder that was added is found", NAMED,
        "  check_folders(contents.folders, names, named, check);\n", "",
        "FolderCheckTest.FindsAddedFolders", EVIDENCE),
    Mutation(
        "folder_missing", "a file that is missing is found", NAMED,
        "    } else if (!holds(contents.others, subject.name)) {\n", "    } else if (false) {\n",
        "FolderCheckTest.FindsMissingFiles", EVIDENCE),
    Mutation(
        "folder_changed", "a file that was changed is found", NAMED,
        "    if (digests[i].sha256 == wanted[i]->sha256) {\n", "    if (true) {\n",
        "FolderCheckTest.FindsChangedFiles", EVIDENCE),
    Mutation(
        "folder_link", "a symbolic link is no file", NAMED, "at->symlink_status(unknown).type()",
        "at->status(unknown).type()", "FolderCheckTest.FindsLinks", EVIDENCE),
    Mutation(
        "folder_twice", "a statement names no file twice", NAMED,
        "twice != names.end()) {\n", "false) {\n", "FolderCheckTest.FindsNamesThatStandTwice",
        EVIDENCE),
    Mutation(
        "certificate_form", "a certificate is written as Trireme writes it", CERTIFICATE,
        "    if (to_text(envelope) != text) {\n", "    if (false) {\n",
        "Certificate.EveryChangedByteIsFound", EVIDENCE),
    Mutation(
        "list_names", "a signed list names files beside it only", LIST,
        "    if (!is_plain_name(name)) {\n", "    if (false) {\n",
        "DigestList.RefusesEverythingElse", EVIDENCE),
    Mutation(
        "list_signature", "the signature of a list is checked", LIST,
        "each.counts_at(\"\") && each.key.verifies(text, signature)", "true",
        "SignedLists.AreNotBelievedOnceTheyChange", EVIDENCE),
]

LINEAGES = [
    Mutation(
        "lineage_ancestors", "no line about an ancestor is missing", PARENTS,
        "  if (stated && *stated != found) {\n", "  if (false) {\n",
        "LineageTest.FindsLinesThatWereCutOffAfterTheParentsAreGone", LINEAGE),
    Mutation(
        "lineage_generations", "a limited number of generations is followed", WALK,
        "  if (depth <= kMostGenerations) {\n", "  if (depth >= 0) {\n",
        "LineageTest.FollowsALimitedNumberOfParents", LINEAGE),
    Mutation(
        "lineage_teacher", "a teacher that was changed is found", PARENTS,
        "  const bool is_same = digest.sha256 == material.sha256;\n  if",
        "  const bool is_same = true;\n  if", "LineageTest.FollowsBasesAndTeachers", LINEAGE),
    Mutation(
        "lineage_home", "a step lies in the folder for which it was made", STEPS,
        "    check_home(path, own);\n", "", "LineageTest.FindsAStepOfAnotherFolder", LINEAGE),
    Mutation(
        "lineage_renamed", "a step has the number of its folder", STEPS,
        "  } else if (number && stated != std::to_string(*number)) {\n", "  } else if (false) {\n",
        "LineageTest.FindsAStepThatWasRenamed", LINEAGE),
    Mutation(
        "lineage_count_gone", "a count of starts that is gone is missed", STEPS,
        "    generation_is_gone(file, provenance);\n", "", "LineageTest.MissesTheCountOfStarts",
        LINEAGE),
    Mutation(
        "lineage_later_start", "a step of a start that is not counted is found", STEPS,
        "  } else if (generation > *latest) {\n", "  } else if (false) {\n",
        "LineageTest.FindsADamagedCountOfStarts", LINEAGE),
    Mutation(
        "lineage_stray", "what is no step of the folder is found", STEPS,
        "  std::for_each(strays.begin(), strays.end(), [&](const fs::path& path) { stray(path); });"
        "\n", "", "LineageTest.FindsWhatIsNoStep", LINEAGE),
    Mutation(
        "lineage_step_link", "a symbolic link is no step", STEPS,
        "    if (fs::is_symlink(fs::symlink_status(path))) {\n", "    if (false) {\n",
        "LineageTest.FindsWhatIsNoStep", LINEAGE),
    Mutation(
        "lineage_model", "files that no trusted key has signed are not read",
        "src/lineage/lineage_walk_model.cc",
        "    end_item(item, first, \"not signed by a trusted key\");\n    return;\n",
        "    end_item(item, first, \"not signed by a trusted key\");\n",
        "ModelTest.IsNotReadUnlessATrustedKeyHasSignedIt", LINEAGE),
    Mutation(
        "record_late_deletion", "the deletion of an older save is none of a newer one", RECORD,
        "  if (manifest_sha256 == latest || manifest_sha256.empty() || latest.empty()) {\n",
        "  if (true) {\n", "AuditRecordTest.ALateRecordOfADeletionIsNoneOfTheNewSave", LINEAGE),
    Mutation(
        "record_folders", "events about other folders do not count", RECORD,
        "folders_.contains(now) ? now : \"\"", "now", "AuditRecordTest.CountsOnlyItsFolders",
        LINEAGE),
    Mutation(
        "record_saved_again", "a step that was saved again is not deleted", RECORD,
        "    step.deleted.clear();\n", "", "AuditRecordTest.HoldsSavesAndDeletions", LINEAGE),
]

PROVENANCE = SIGNATURES + STATEMENTS + LINEAGES
