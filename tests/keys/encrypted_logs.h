// A run with encrypted logs, and the keys to start it and to read its files.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "src/base/append_file.h"
#include "src/base/file.h"
#include "src/keys/closed_logs.h"
#include "src/keys/key_file.h"
#include "src/keys/keyed_text_reader.h"
#include "src/keys/log_keys.h"
#include "tests/support/temp_folder.h"

namespace trireme {

namespace fs = std::filesystem;

class EncryptedLogs : public testing::Test {
 protected:
  EncryptedLogs() {
    for (const char* name : {"site.key", "other.key"}) {
      KeyFile::create(folder_.path() / name, name);
    }
    fs::create_directories(run_ / "logs");
  }
  std::string uri(const char* name = "site.key") const {
    return "file:" + (folder_.path() / name).string();
  }
  // Does what a run does when it starts with encrypted logs, and returns what seals its files.
  std::shared_ptr<const RunSealer> start(const fs::path& run) const {
    DataKey key = DataKey::generate();
    std::vector<Recipient> recipients = KeyRing({uri()}).wrap(key, "").recipients;
    const auto whole =
        std::make_shared<const FolderKey>(FolderKey{std::move(key), std::move(recipients)});
    auto sealer =
        std::make_shared<const LogSealer>(run, std::shared_ptr<const DataKey>(whole, &whole->key));
    begun_ = begin_encrypted_files(run, *whole, *sealer);
    key_ = whole;
    return sealer;
  }
  // Does what a run does when it ends in good order.
  void close() const { (void)close_logs(run_, begun_.start, key_->key); }
  std::string warning_of_start() const {
    (void)start();
    return begun_.warning;
  }
  std::shared_ptr<const RunSealer> start() const { return start(run_); }
  std::string read(const fs::path& file, const char* key = "site.key") const {
    return KeyedTextReader(KeyRing({uri(key)})).read(file);
  }
  static void append(const fs::path& file, const RunSealer& sealer, const std::string& text) {
    AppendFile::open_lines(file, sealer.sealer(file)).append(text);
  }
  // Returns what lies in all files of a folder.
  static std::string all_bytes(const fs::path& folder) {
    std::string all;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      all += entry.is_regular_file() ? read_file(entry.path()) : "";
    }
    return all;
  }

  mutable BegunLogs begun_;  // by the latest start
  mutable std::shared_ptr<const FolderKey> key_;
  const TempFolder folder_;
  const fs::path run_ = folder_.path() / "run";
  const fs::path metrics_ = run_ / "metrics.jsonl";
};

}  // namespace trireme
