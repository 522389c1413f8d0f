// See lineage_walk.h.
#include <algorithm>
#include <system_error>

#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json_fields.h"
#include "src/base/run_text.h"
#include "src/base/units.h"
#include "src/keys/closed_logs.h"
#include "src/lineage/lineage_walk.h"

namespace trireme {
namespace fs = std::filesystem;

void LineageWalk::run(const fs::path& folder) {
  std::error_code code;
  const fs::path checkpoints = folder / "checkpoints";
  if (!fs::is_directory(folder / kLogKeysFolder, code)) {
    steps_of(checkpoints);
  } else if (!fs::is_directory(checkpoints, code)) {
    add_fault(
        ExitCode::not_found,
        fmt::format("{} is not there, so that no checkpoint was checked: if the checkpoints of "
                    "this run are elsewhere, verify that folder by itself",
                    checkpoints.string()));
  } else {
    try {
      steps_of(checkpoints);
    } catch (const NotFound& error) {  // there is none yet, or none is left
      add_fault(ExitCode::not_found, error.what());
    }
  }
  logs(folder);
}

void LineageWalk::logs(const fs::path& folder) {
  const std::vector<StatedLogs> stated = stated_logs(folder);
  const std::optional<RunLogsCheck> check = check_run_logs(folder, options_.logs);
  if (!check) {
    if (!stated.empty()) {
      logs_are_gone(stated.front(), folder);
    }
    return;
  }
  const std::size_t item = lineage.items.size();
  const std::size_t first = lineage.faults.size();
  add_item(0, "logs", folder.string()).facts = facts_of_logs(*check);
  for (const LogFault& fault : check->faults) {
    add_fault(fault.code, fault.what);
  }
  compare_logs(stated, *check, folder);
  compare_starts(*check, folder);
  if (!check->lack.empty()) {
    lineage.notes.push_back(fmt::format("{}: {}", folder.string(), check->lack));
  }
  if (const std::string note = note_of_files_set_aside(folder); !note.empty()) {
    lineage.notes.push_back(fmt::format("{}: {}", folder.string(), note));
  }
  // With a wrong key, nothing was authenticated.
  const bool has_faults = lineage.faults.size() > first;
  end_item(item, first,
           check->files == 0 && has_faults
               ? std::string("no encrypted file was checked")
               : fmt::format("{} encrypted {}, {}, {}", check->files,
                             check->files == 1 ? "file" : "files", format_bytes(check->bytes),
                             options_.logs == nullptr ? "checked without their keys"
                                                      : "authenticated with their keys"));
}

std::vector<std::string> LineageWalk::facts_of_logs(const RunLogsCheck& check) const {
  std::vector<std::string> facts;
  const std::vector<LogStart>& starts = check.starts.all;
  facts.push_back(
      starts.empty() || starts.front().run.empty()
          ? fmt::format("{} of a run without an identity", counted(std::ssize(starts), "start"))
          : fmt::format("{} of the run {}", counted(std::ssize(starts), "start"),
                        starts.front().run));
  facts.push_back(fmt::format("{}, of which {} without an end", counted(check.sections, "section"),
                              check.unfinished));
  if (check.last_closed > 0) {
    facts.push_back(fmt::format("start {} has left a record of how {} ended", check.last_closed,
                                counted(check.closed_files, "file")));
  }
  if (options_.logs == nullptr) {
    facts.push_back(
        "form, sections and record are as a run leaves them; only the keys (--key) show that no "
        "record was changed or moved");
  }
  return facts;
}

// Returns what the verified steps state that were made in this folder.
std::vector<LineageWalk::StatedLogs> LineageWalk::stated_logs(const fs::path& folder) {
  std::vector<StatedLogs> stated;
  const auto is_this_folder = [&](const Provenance& own) {
    std::error_code code;
    return fs::weakly_canonical(place_now(detail_of(own, "run")), code) ==
           fs::weakly_canonical(folder, code);
  };
  for (const auto& [path, statements] : bundles_) {
    const SignedStatement& own = statements->front();
    if (own.signature.state != SignatureState::trusted || !is_this_folder(own.provenance)) {
      continue;
    }
    try {
      const nlohmann::json& details = *own.provenance.details;
      if (details.contains("logs")) {
        const nlohmann::json& logs = object_field(details, "logs");
        stated.push_back(
            {path, parse_log_contents(text_field(logs, "contents"), text_field(logs, "key"))});
      }
    } catch (const DataError& error) {
      add_fault(ExitCode::bad_data,
                fmt::format("{}: `logs` of its provenance: {}", path, error.what()));
    }
  }
  return stated;
}

void LineageWalk::compare_logs(const std::vector<StatedLogs>& stated, const RunLogsCheck& check,
                               const fs::path& folder) {
  const std::string keys = (folder / kLogKeysFolder).string();
  for (const StatedLogs& each : stated) {
    const auto own =
        std::find_if(check.starts.all.begin(), check.starts.all.end(),
                     [&](const LogStart& start) { return start.key == each.start.key; });
    if (own != check.starts.all.end() && own->run == each.start.run &&
        own->number == each.start.number) {
      continue;
    }
    const bool is_of_another_run =
        std::any_of(check.starts.all.begin(), check.starts.all.end(),
                    [&](const LogStart& start) { return start.run != each.start.run; });
    if (own != check.starts.all.end() || is_of_another_run) {
      add_fault(ExitCode::bad_data,
                fmt::format("{} holds keys of other logs than those of the run that saved {} (run "
                            "{}, start {}): logs of another run were put here",
                            keys, each.step, each.start.run, each.start.number));
      return;
    }
    add_fault(ExitCode::not_found,
              fmt::format("{}: the key {} of start {} is gone, which saved {}: nothing opens what "
                          "that start has logged",
                          keys, each.start.key, each.start.number, each.step));
  }
}

void LineageWalk::logs_are_gone(const StatedLogs& stated, const fs::path& folder) {
  const std::vector<fs::path> plain = plain_files_of_run(folder);
  if (plain.empty()) {
    add_fault(ExitCode::not_found,
              fmt::format("{}: the run that saved {} has encrypted its logs, and none is here any "
                          "more",
                          folder.string(), stated.step));
  } else {
    add_fault(ExitCode::bad_data,
              fmt::format("{}: the run that saved {} has encrypted its logs; {} is not encrypted: "
                          "somebody else put it there",
                          folder.string(), stated.step, plain.front().string()));
  }
}

}  // namespace trireme
