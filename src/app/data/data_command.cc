#include "src/app/data/data_command.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "src/app/command/standard_output.h"
#include "src/app/data/data_subcommands.h"
#include "src/base/printable.h"
#include "src/base/units.h"

namespace trireme {
namespace {

std::string counts_text(const PackReport& report) {
  std::string text;
  if (report.counts.binary_files > 0) {
    text += fmt::format(
        "  skipped {} (of compressed files, those that end in .gz, .tgz or .zst are read: "
        "decompress "
        "others first)\n",
        counted(report.counts.binary_files, "binary file"));
  }
  if (report.skipped_inputs > 0) {
    text += fmt::format(
        "  skipped {} (name a link as an input to follow it)\n",
        report.skipped_inputs == 1
            ? "1 symbolic link or special file"
            : fmt::format("{} symbolic links and special files", report.skipped_inputs));
  }
  if (report.counts.empty_documents > 0) {
    text += fmt::format("  skipped {}\n", counted(report.counts.empty_documents, "empty document"));
  }
  if (report.counts.skipped_members > 0) {
    text += fmt::format("  skipped {} of archives, from which .txt, .json and .jsonl are read\n",
                        counted(report.counts.skipped_members, "member"));
  }
  if (report.counts.duplicates > 0) {
    text += fmt::format("  left out {}\n", counted(report.counts.duplicates, "duplicate"));
  }
  if (report.kept_shards > 0) {
    text += fmt::format("  kept {} of an earlier run\n", counted(report.kept_shards, "shard"));
  }
  return text;
}

nlohmann::ordered_json report_json(const PackReport& report) {
  return {{"folder", report.folder.string()},
          {"was_complete", report.was_complete},
          {"shards", report.shards},
          {"kept_shards", report.kept_shards},
          {"tokens", report.n_tokens},
          {"documents", report.n_docs},
          {"bytes", report.bytes},
          {"files", report.counts.files},
          {"binary_files_skipped", report.counts.binary_files},
          {"links_and_special_files_skipped", report.skipped_inputs},
          {"empty_documents_skipped", report.counts.empty_documents},
          {"archive_members_skipped", report.counts.skipped_members},
          {"duplicates_left_out", report.counts.duplicates},
          {"encrypted", report.is_encrypted},
          {"digest", report.digest}};
}

}  // namespace

RankGroup rank_group(Communicator& comm) {
  comm.set_deadline(std::chrono::hours(24 * 30));
  return {.rank = comm.rank(),
          .size = comm.size(),
          .broadcast = [&comm](const std::string& text) { return broadcast_text(comm, text, 0); },
          .gather = [&comm](const std::string& text) { return all_gather_text(comm, text); }};
}

void print_pack_reports(const std::vector<PackReport>& reports, bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const PackReport& report : reports) {
      list.push_back(report_json(report));
    }
    print_json({{"schema", 1}, {"datasets", list}});
    return;
  }
  for (const PackReport& report : reports) {
    fmt::print("{}: {}, {}, {}, {}{}{}\n  {}\n{}", printable(report.folder.string()),
               counted(report.n_tokens, "token"), counted(report.n_docs, "document"),
               counted(report.shards, "shard"), format_bytes(report.bytes),
               report.is_encrypted ? ", encrypted" : "",
               report.was_complete ? " (already complete)" : "", report.digest,
               counts_text(report));
  }
}

void add_data_command(CommandLine& app, const CommunicatorAccess& communicator,
                      const AccessSource& access, int& exit_code) {
  CommandLine& data = app.add_command("data", "Create, inspect and check datasets");
  data.require_command();
  data.footer("Example:\n  trireme data pack docs/ src/ --out data/text --validation-fraction 0.1");
  add_data_pack(data, communicator, access);
  add_data_list(data);
  add_data_info(data, access);
  add_data_verify(data, communicator, access, exit_code);
  add_data_stage(data, communicator, access);
  add_data_convert(data, communicator, access);
  add_data_export(data, communicator, access);
  add_data_report(data, communicator, access);
  add_data_drift(data, access, exit_code);
  add_data_encrypt(data, communicator, access);
  add_data_decrypt(data, communicator, access);
}

}  // namespace trireme
