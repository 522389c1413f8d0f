"""Mutations of audit logs, which tests/evidence must find."""

from mutation import EVIDENCE, Mutation

CHECK = "src/evidence/audit_check.cc"
LOG = "src/evidence/audit_log.cc"
LINE = "src/evidence/audit_line.cc"
COPY = "src/evidence/audit_copy.cc"

AUDIT = [
    Mutation(
        "audit_chain", "a line names the digest of the line before it", CHECK,
        "    if (prev == last.sha256) {\n", "    if (true) {\n",
        "Audit.AnEditedLineIsNamed", EVIDENCE),
    Mutation(
        "audit_number", "lines are numbered without gaps", CHECK,
        "      if (seq != last.seq + 1) {\n        fault(line, fmt::format(\"has the number {} "
        "where {} is due\"",
        "      if (false) {\n        fault(line, fmt::format(\"has the number {} where {} is due\"",
        "AuditForms.NumbersHaveNoGaps", EVIDENCE),
    Mutation(
        "audit_line_end", "the last line is whole", CHECK, "    if (!line.has_end) {\n",
        "    if (false) {\n", "Audit.ACutIsFoundByAHeadFromElsewhere", EVIDENCE),
    Mutation(
        "audit_head_form", "a head is written as Trireme writes it", CHECK,
        "    if (!is_exact || envelope", "    if (envelope", "AuditForms.AHeadHasNothingElse",
        EVIDENCE),
    Mutation(
        "audit_head_place", "a head signs the line before it", CHECK,
        "text_field(payload, \"sha256\") != text_field(object, \"prev\")", "false",
        "Audit.AHeadOfAnotherLogIsRefused", EVIDENCE),
    Mutation(
        "audit_forged", "a signature is that of the key that it names", CHECK,
        "found.state == SignatureState::forged ||", "false ||",
        "Audit.SignaturesAreCheckedInBatches", EVIDENCE),
    Mutation(
        "audit_named_key", "a head names the key that has signed it", CHECK,
        "|| !found.are_named)", "|| false)",
        "Audit.EveryChangedByteOfASignedLogIsFoundInItsLine", EVIDENCE),
    Mutation(
        "audit_one_signature", "a head has one signature", CHECK,
        "mark.head->signatures.size() != 1 ||", "false ||",
        "AuditForms.AHeadHasOneSignature", EVIDENCE),
    Mutation(
        "audit_each_event", "each event has a head of its own", CHECK,
        "        note_unsigned();\n        event_ = marks_[at].line;\n",
        "        event_ = marks_[at].line;\n",
        "Audit.ALaterHeadDoesNotVouchForEventsWithoutOne", EVIDENCE),
    Mutation(
        "audit_unsigned_end", "the last event has a head", CHECK,
        "    check_signatures();\n    note_unsigned();\n", "    check_signatures();\n",
        "Audit.LinesAfterTheLastHeadAreNotSigned", EVIDENCE),
    Mutation(
        "audit_known_head", "a head from elsewhere is among the lines", CHECK,
        "      if (found.line == 0) {\n", "      if (false) {\n",
        "Audit.ACutIsFoundByAHeadFromElsewhere", EVIDENCE),
    Mutation(
        "audit_known_digest", "a line has the digest of the head from elsewhere", CHECK,
        "      } else if (found.sha256 != head.sha256) {\n", "      } else if (false) {\n",
        "Audit.ACutIsFoundByAHeadFromElsewhere", EVIDENCE),
    Mutation(
        "audit_clock", "a clock that went back is noted", "src/evidence/audit_line.cc",
        "time < last_time) {", "false) {", "Audit.AClockThatWentBackIsNoted", EVIDENCE),
    Mutation(
        "audit_lock", "one writer appends at a time", LOG,
        "  lock(file);\n  Tail tail", "  Tail tail",
        "AuditForms.AWriterWaitsForAnother", EVIDENCE),
    Mutation(
        "audit_torn_head", "an event whose head is torn leaves no unsigned line", LOG,
        "key_ && has_torn_head(tail) ?", "false && has_torn_head(tail) ?",
        "AuditTorn.AnEventWhoseHeadIsTornIsQuotedAndTheLogVerifies", EVIDENCE),
    Mutation(
        "audit_torn_removed", "what a crash has torn is removed before the next line", LOG,
        "  if (!tail.torn.empty() && ::ftruncate(", "  if (false && ::ftruncate(",
        "Audit.ATornLineIsRemovedAndRecorded", EVIDENCE),
    Mutation(
        "audit_torn_recorded", "what a crash has torn is recorded", LOG,
        "  if (!tail.torn.empty()) {\n", "  if (false) {\n",
        "Audit.ATornLineIsRemovedAndRecorded", EVIDENCE),
    Mutation(
        "audit_damaged_end", "nothing is appended to a damaged line", LOG,
        "    return count_field(parse_json(line), \"seq\");\n", "    return 0;\n",
        "Audit.ADamagedLastLineStopsTheWriter", EVIDENCE),
    Mutation(
        "audit_link", "the log is no symbolic link", LOG,
        "  File file = File::open_to_append_unlinked(path_);\n  lock",
        "  File file = File::open_to_append(path_);\n  lock",
        "Audit.ADamagedLastLineStopsTheWriter", EVIDENCE),
    Mutation(
        "audit_room", "a disk that is full leaves no part of an event", LOG,
        "    (void)!::ftruncate(file.fd(), old_bytes);\n", "",
        "AuditForms.ALogThatCannotGrowStaysAsItWas", EVIDENCE),
    Mutation(
        "audit_long_details", "details that are too long are replaced by their digest", LINE,
        "  if (std::ssize(text) > kMostAuditLineBytes) {\n", "  if (false) {\n",
        "Audit.DetailsThatAreTooLongAreReplaced", EVIDENCE),
]
