// SqliteDatabase and SqliteStatement own what SQLite hands out and turn its errors into exceptions.
// A database that comes with a folder may be anybody's: it runs no triggers and reads no views.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "src/base/unique_handle.h"

struct sqlite3;
struct sqlite3_stmt;

namespace trireme {

// Thrown by everything below; what() names the file.
struct SqliteError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct SqliteTraits {
  using Handle = sqlite3*;
  static Handle none() { return nullptr; }
  static void close(Handle database);
};

struct SqliteStatementTraits {
  using Handle = sqlite3_stmt*;
  static Handle none() { return nullptr; }
  static void close(Handle statement);
};

// A statement, which several bindings may run one after the other. Numbers of columns begin at 0,
// those of parameters at 1.
class SqliteStatement {
 public:
  SqliteStatement(sqlite3* database, const std::string& sql);
  SqliteStatement& bind(int parameter, std::string_view text);
  SqliteStatement& bind(int parameter, std::int64_t number);
  SqliteStatement& bind(int parameter, double number);
  // Returns whether there is another row; after the last one, new values can be bound.
  bool next();
  std::string text(int column) const;
  std::int64_t number(int column) const;

 private:
  void check(int code) const;

  sqlite3* database_;
  UniqueHandle<SqliteStatementTraits> statement_;
};

class SqliteDatabase {
 public:
  // Opens or makes a file; follows no symbolic link. ":memory:" makes one in memory.
  explicit SqliteDatabase(const std::string& file);
  // Runs statements that return nothing.
  void run(const std::string& sql);
  SqliteStatement statement(const std::string& sql) { return {database_.get(), sql}; }

 private:
  UniqueHandle<SqliteTraits> database_;
};

}  // namespace trireme
