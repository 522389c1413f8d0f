// The records of a registry of models, and their text. Each is a file of its own that is written
// once and never changed. Plain values.
//
//   models/NAME/versions/3.json:
//     {"schema": 1, "record": "version", "model": "chat", "version": 3, "kind": "checkpoint",
//      "path": "/runs/chat/checkpoints/step-00000100", "sha256": "<64 digits>", "step": 100,
//      "label": "internal/AE/...", "note": "...", "figures": {"loss": 2.1}, "gates_met": true,
//      "weights": "plain", "time": "2026-11-28T12:00:00Z", "user": "sara", "host": "n1"}
//   models/NAME/changes/7.json:
//     {"schema": 1, "record": "change", "model": "chat", "change": 7, "stage": "production",
//      "version": 3, "sha256": "<64 digits>", "action": "promote", "reason": "...", "figures": {},
//      "despite_gates": true, "time": ..., ...}
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace trireme {

// Who has written a record, when and where.
struct RecordOrigin {
  std::string time;  // utc_now()
  std::string user;
  std::string host;
  friend bool operator==(const RecordOrigin&, const RecordOrigin&) = default;
};

// What `trireme eval -J FILE` has found of a model.
struct EvaluationResult {
  std::map<std::string, double> figures;  // numbers by name, such as tasks.questions.acc
  std::optional<bool> gates_met;          // empty if it was not judged by gates
  // SHA-256 of the manifest of the checkpoint that was judged; empty in results of versions that
  // did not write it. It is not kept in records, which name the version.
  std::string manifest_sha256 = {};
  // Which weights of the checkpoint were judged: "plain", or "average,int8" and the like, as `eval`
  // was told. Empty if there are no figures, or in what earlier programs wrote.
  std::string weights = {};
  friend bool operator==(const EvaluationResult&, const EvaluationResult&) = default;
};

enum class ModelKind {
  checkpoint,  // the folder of a step
  exported     // a folder that `trireme export` has written, or any other with files of a model
};
std::string_view kind_word(ModelKind kind);

struct VersionRecord {
  std::string model;
  std::int64_t version = 0;  // from 1
  ModelKind kind = ModelKind::checkpoint;
  std::filesystem::path path;  // absolute
  // SHA-256 of the checkpoint's manifest, or of the lines "<digest>  <path below the folder>\n" of
  // all files of an exported model, sorted by path.
  std::string sha256;
  std::int64_t step = -1;  // of the checkpoint; -1 if unknown
  std::string label;       // of the data, as Label::to_string() writes it; empty if there is none
  std::string note;
  EvaluationResult result;
  RecordOrigin origin;
  friend bool operator==(const VersionRecord&, const VersionRecord&) = default;
};

struct ChangeRecord {
  std::string model;
  std::int64_t number = 0;  // from 1, in order
  std::string stage;
  std::int64_t version = 0;    // that the stage has from then on
  std::string sha256;          // that of the version; empty in records of earlier programs
  bool is_rollback = false;    // the version is the one before that which it replaces
  bool despite_gates = false;  // the version had missed its gates
  std::string reason;          // may be empty
  EvaluationResult result;     // that a promotion was decided by
  RecordOrigin origin;
  friend bool operator==(const ChangeRecord&, const ChangeRecord&) = default;
};

// No larger record is read.
inline constexpr std::int64_t kMostRecordBytes = std::int64_t{1} << 20;
inline constexpr std::int64_t kMostRecordNumber = std::int64_t{1} << 40;

// Returns whether the text can be the name of a model or of a stage.
bool is_registry_name(std::string_view name);
// Throws ConfigError unless the text can be the name of a model or of a stage: 1 to 64 lower-case
// letters, digits, '.', '_' and '-', of which the first is a letter or digit. what: "the model".
void check_registry_name(std::string_view what, std::string_view name);

// End with a line feed. Throw ConfigError if the text would exceed kMostRecordBytes.
std::string record_text(const VersionRecord& record);
std::string record_text(const ChangeRecord& record);

// Throw DataError that names `origin` for any other text, a newer schema, or a record of another
// model or number than those given.
VersionRecord parse_version(std::string_view text, const std::string& model, std::int64_t version,
                            const std::string& origin);
ChangeRecord parse_change(std::string_view text, const std::string& model, std::int64_t number,
                          const std::string& origin);

// Reads a file that `trireme eval -J` has written. Sets `step` to that of the checkpoint it judged.
// Throws NotFound, IoError, and DataError that names the file.
EvaluationResult read_evaluation(const std::filesystem::path& file, std::int64_t& step);

}  // namespace trireme
