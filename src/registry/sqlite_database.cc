#include "src/registry/sqlite_database.h"

#include <fmt/core.h>
#include <sqlite3.h>

namespace trireme {
namespace {

// How long to wait for another program that writes the file, in ms.
constexpr int kWait = 10000;

[[noreturn]] void fail(sqlite3* database) {
  const char* const file = sqlite3_db_filename(database, nullptr);
  throw SqliteError(fmt::format("{}: {}", file == nullptr ? "" : file, sqlite3_errmsg(database)));
}

}  // namespace

void SqliteTraits::close(Handle database) { sqlite3_close(database); }
void SqliteStatementTraits::close(Handle statement) { sqlite3_finalize(statement); }

SqliteStatement::SqliteStatement(sqlite3* database, const std::string& sql) : database_(database) {
  sqlite3_stmt* statement = nullptr;
  check(sqlite3_prepare_v2(database, sql.c_str(), -1, &statement, nullptr));
  statement_.reset(statement);
}

void SqliteStatement::check(int code) const {
  if (code != SQLITE_OK && code != SQLITE_ROW && code != SQLITE_DONE) {
    fail(database_);
  }
}

SqliteStatement& SqliteStatement::bind(int parameter, std::string_view text) {
  check(sqlite3_bind_text64(statement_.get(), parameter, text.data(), text.size(), SQLITE_TRANSIENT,
                            SQLITE_UTF8));
  return *this;
}

SqliteStatement& SqliteStatement::bind(int parameter, std::int64_t number) {
  check(sqlite3_bind_int64(statement_.get(), parameter, number));
  return *this;
}

SqliteStatement& SqliteStatement::bind(int parameter, double number) {
  check(sqlite3_bind_double(statement_.get(), parameter, number));
  return *this;
}

bool SqliteStatement::next() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) {
    return true;
  }
  const int end = sqlite3_reset(statement_.get());
  check(code);
  check(end);
  return false;
}

std::string SqliteStatement::text(int column) const {
  const auto* const text = sqlite3_column_text(statement_.get(), column);
  const int bytes = sqlite3_column_bytes(statement_.get(), column);
  return text == nullptr
             ? std::string()
             : std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(bytes));
}

std::int64_t SqliteStatement::number(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

SqliteDatabase::SqliteDatabase(const std::string& file) {
  sqlite3* database = nullptr;
  const int code =
      sqlite3_open_v2(file.c_str(), &database,
                      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOFOLLOW, nullptr);
  database_.reset(database);
  if (code != SQLITE_OK) {
    throw SqliteError(fmt::format("{}: {}", file, sqlite3_errstr(code)));
  }
  sqlite3_busy_timeout(database, kWait);
  for (const int feature : {SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_VIEW,
                            SQLITE_DBCONFIG_TRUSTED_SCHEMA}) {
    sqlite3_db_config(database, feature, 0, nullptr);
  }
  sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
}

void SqliteDatabase::run(const std::string& sql) {
  if (sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    fail(database_.get());
  }
}

}  // namespace trireme
