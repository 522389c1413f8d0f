#include "src/registry/registry_index.h"

#include <charconv>
#include <filesystem>
#include <map>
#include <set>

#include <fmt/core.h>
#include <sys/stat.h>

#include "src/base/error.h"
#include "src/base/file.h"
#include "src/base/printable.h"
#include "src/registry/sqlite_database.h"

namespace trireme {
namespace {

namespace fs = std::filesystem;

constexpr const char* kIndexName = "index.sqlite";
// Marks a database as ours, and its tables as those below.
constexpr std::int64_t kApplication = 0x54726972;
constexpr std::int64_t kVersion = 1;
// files: every record that was read, and what its file was like then.
constexpr const char* kTables = R"(
CREATE TABLE files(model TEXT, kind TEXT, number INTEGER, bytes INTEGER, changed INTEGER,
                   PRIMARY KEY(model, kind, number)) WITHOUT ROWID;
CREATE TABLE versions(model TEXT, version INTEGER, record TEXT,
                      PRIMARY KEY(model, version)) WITHOUT ROWID;
CREATE TABLE figures(model TEXT, version INTEGER, figure TEXT, value REAL,
                     PRIMARY KEY(model, version, figure)) WITHOUT ROWID;
CREATE TABLE stages(model TEXT, stage TEXT, version INTEGER,
                    PRIMARY KEY(model, stage)) WITHOUT ROWID;
)";

// What tells two states of a file apart.
struct FileState {
  std::int64_t bytes = 0;
  std::int64_t changed = 0;  // in ns
  friend bool operator==(const FileState&, const FileState&) = default;
};

FileState state_of(const fs::path& file) {
  struct stat found = {};
  if (::stat(file.c_str(), &found) != 0) {
    throw_errno(errno, "stat", file);
  }
  return {found.st_size, found.st_ctim.tv_sec * 1'000'000'000 + found.st_ctim.tv_nsec};
}

// Removes a database and what SQLite keeps beside it, if they are files.
void remove_database(const fs::path& file) {
  for (const char* const suffix : {"", "-journal", "-wal", "-shm"}) {
    const fs::path path = file.string() + suffix;
    std::error_code none;
    if (fs::is_regular_file(fs::symlink_status(path, none))) {
      fs::remove(path, none);
    }
  }
}

}  // namespace

class RegistryIndex::Database {
 public:
  explicit Database(const std::string& file) : sql(file) {
    sql.run("BEGIN IMMEDIATE");  // of several programs, one makes the tables
    if (number_of("SELECT count(*) FROM sqlite_schema") == 0) {
      sql.run(fmt::format("PRAGMA application_id={}; PRAGMA user_version={}; {}", kApplication,
                          kVersion, kTables));
    } else if (number_of("PRAGMA application_id") != kApplication ||
               number_of("PRAGMA user_version") != kVersion) {
      throw SqliteError(fmt::format("{} is of another program or version", file));
    }
    sql.run("COMMIT");
  }

  std::int64_t number_of(const std::string& query) {
    SqliteStatement statement = sql.statement(query);
    return statement.next() ? statement.number(0) : 0;
  }

  // Returns the numbers and states of a model's records of one kind, as they were read.
  std::map<std::int64_t, FileState> known(const std::string& model, const char* kind) {
    std::map<std::int64_t, FileState> result;
    SqliteStatement rows =
        sql.statement("SELECT number, bytes, changed FROM files WHERE model=? AND kind=?");
    rows.bind(1, model).bind(2, kind);
    while (rows.next()) {
      result[rows.number(0)] = {rows.number(1), rows.number(2)};
    }
    return result;
  }

  void forget(const std::string& model) {
    for (const char* const table : {"files", "versions", "figures", "stages"}) {
      sql.statement(fmt::format("DELETE FROM {} WHERE model=?", table)).bind(1, model).next();
    }
  }

  void forget_version(const std::string& model, std::int64_t number) {
    for (const char* const table : {"versions", "figures"}) {
      sql.statement(fmt::format("DELETE FROM {} WHERE model=? AND version=?", table))
          .bind(1, model)
          .bind(2, number)
          .next();
    }
    forget_file(model, "version", number);
  }

  void forget_file(const std::string& model, const char* kind, std::int64_t number) {
    sql.statement("DELETE FROM files WHERE model=? AND kind=? AND number=?")
        .bind(1, model)
        .bind(2, kind)
        .bind(3, number)
        .next();
  }

  void put_file(const std::string& model, const char* kind, std::int64_t number,
                const FileState& state) {
    sql.statement("INSERT OR REPLACE INTO files VALUES(?,?,?,?,?)")
        .bind(1, model)
        .bind(2, kind)
        .bind(3, number)
        .bind(4, state.bytes)
        .bind(5, state.changed)
        .next();
  }

  void put_version(const VersionRecord& record) {
    sql.statement("INSERT OR REPLACE INTO versions VALUES(?,?,?)")
        .bind(1, record.model)
        .bind(2, record.version)
        .bind(3, record_text(record))
        .next();
    SqliteStatement figure = sql.statement("INSERT OR REPLACE INTO figures VALUES(?,?,?,?)");
    for (const auto& [name, value] : record.result.figures) {
      figure.bind(1, record.model).bind(2, record.version).bind(3, name).bind(4, value).next();
    }
  }

  std::vector<ListedVersion> versions(const RegistryQuery& query) {
    std::string question =
        "SELECT model, version, record FROM versions AS v WHERE (?1='' OR model=?1) AND "
        "(?2='' OR EXISTS(SELECT 1 FROM stages WHERE model=v.model AND stage=?2 AND "
        "version=v.version))";
    for (std::size_t i = 0; i < query.bounds.size(); ++i) {
      question += fmt::format(
          " AND EXISTS(SELECT 1 FROM figures WHERE model=v.model AND version=v.version AND "
          "figure=?{} AND value {} ?{})",
          2 * i + 3, query.bounds[i].relation, 2 * i + 4);
    }
    SqliteStatement rows = sql.statement(question + " ORDER BY model, version");
    rows.bind(1, query.model).bind(2, query.stage);
    int parameter = 3;
    for (const FigureBound& bound : query.bounds) {
      rows.bind(parameter, bound.figure).bind(parameter + 1, bound.value);
      parameter += 2;
    }
    std::vector<ListedVersion> result;
    SqliteStatement stages =
        sql.statement("SELECT stage FROM stages WHERE model=? AND version=? ORDER BY stage");
    while (rows.next()) {
      ListedVersion listed;
      listed.record = parse_version(rows.text(2), rows.text(0), rows.number(1), kIndexName);
      stages.bind(1, listed.record.model).bind(2, listed.record.version);
      while (stages.next()) {
        listed.stages.push_back(stages.text(0));
      }
      result.push_back(std::move(listed));
    }
    return result;
  }

  SqliteDatabase sql;
};

FigureBound FigureBound::parse(const std::string& text) {
  FigureBound bound;
  const std::size_t at = text.find_first_of("<>=");
  if (at != std::string::npos) {
    bound.figure = text.substr(0, at);
    const bool is_long = text[at] != '=' && text.size() > at + 1 && text[at + 1] == '=';
    bound.relation = text.substr(at, is_long ? 2 : 1);
    const std::string number = text.substr(at + bound.relation.size());
    const char* const end = number.data() + number.size();
    const auto [stop, error] = std::from_chars(number.data(), end, bound.value);
    if (!bound.figure.empty() && error == std::errc() && stop == end) {
      return bound;
    }
  }
  throw ConfigError(fmt::format("'{}' is no condition such as 'loss<=2.1'", printable(text)));
}

RegistryIndex::RegistryIndex(const ModelRegistry& registry) : registry_(registry) {
  const fs::path file = registry.folder() / kIndexName;
  // The second attempt is without what was there; the third needs no disk.
  for (int attempt = 0;; ++attempt) {
    problems_.clear();
    try {
      database_ = std::make_unique<Database>(attempt < 2 ? file.string() : ":memory:");
      update(*database_);
      return;
    } catch (const SqliteError& error) {
      database_.reset();
      if (attempt == 2) {
        throw IoError(error.what());
      }
      why_in_memory_ = attempt == 0 ? "" : error.what();
      remove_database(file);
    }
  }
}

RegistryIndex::~RegistryIndex() = default;

void RegistryIndex::update(Database& database) {
  database.sql.run("BEGIN IMMEDIATE");
  std::set<std::string> gone;
  SqliteStatement rows = database.sql.statement(
      "SELECT model FROM files UNION SELECT model FROM versions UNION SELECT model FROM stages");
  while (rows.next()) {
    gone.insert(rows.text(0));
  }
  for (const std::string& model : registry_.models()) {
    gone.erase(model);
    update_versions(database, model);
    update_stages(database, model);
  }
  for (const std::string& model : gone) {
    database.forget(model);
  }
  database.sql.run("COMMIT");
}

void RegistryIndex::update_versions(Database& database, const std::string& model) {
  std::map<std::int64_t, FileState> known = database.known(model, "version");
  for (const std::int64_t number : registry_.version_numbers(model)) {
    const FileState state = state_of(registry_.version_file(model, number));
    const auto found = known.find(number);
    const bool is_known = found != known.end() && found->second == state;
    known.erase(number);
    if (is_known) {
      continue;
    }
    database.forget_version(model, number);
    try {
      database.put_version(registry_.version(model, number));
      database.put_file(model, "version", number, state);
    } catch (const DataError& error) {
      problems_.emplace_back(error.what());
    }
  }
  for (const auto& [number, state] : known) {
    database.forget_version(model, number);
  }
}

void RegistryIndex::update_stages(Database& database, const std::string& model) {
  std::map<std::int64_t, FileState> present;
  for (const std::int64_t number : registry_.change_numbers(model)) {
    present[number] = state_of(registry_.change_file(model, number));
  }
  const std::map<std::int64_t, FileState> known = database.known(model, "change");
  if (known == present) {
    return;
  }
  database.sql.statement("DELETE FROM stages WHERE model=?").bind(1, model).next();
  for (const auto& [number, state] : known) {
    database.forget_file(model, "change", number);
  }
  try {
    const std::vector<ChangeRecord> changes = registry_.changes(model);
    std::set<std::string> stages;
    for (const ChangeRecord& change : changes) {
      stages.insert(change.stage);
    }
    for (const std::string& stage : stages) {
      database.sql.statement("INSERT INTO stages VALUES(?,?,?)")
          .bind(1, model)
          .bind(2, stage)
          .bind(3, versions_in_use(changes, stage).back().version)
          .next();
    }
    for (const auto& [number, state] : present) {
      database.put_file(model, "change", number, state);
    }
  } catch (const DataError& error) {
    problems_.emplace_back(error.what());
  }
}

std::vector<ListedVersion> RegistryIndex::versions(const RegistryQuery& query) const {
  try {
    return database_->versions(query);
  } catch (const SqliteError& error) {
    throw IoError(error.what());
  }
}

}  // namespace trireme
