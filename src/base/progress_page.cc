#include "src/base/progress_page.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "src/base/error.h"
#include "src/base/file.h"

namespace trireme {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMagic = 0x3230'4547'4150'5254;  // "TRPAGE02"
constexpr std::array<std::string_view, kProgressPhases> kNames = {"start",    "load",       "train",
                                                                  "evaluate", "checkpoint", "end"};
// The index of each word.
enum Word : std::size_t {
  kMagicWord,
  kSequence,
  kPid,
  kRank,
  kAttempt,
  kStep,
  kBegunAt,
  kPhase,
  kDeadline,
  kChanges,
  kCreated,
  kChanged,
  kFirstStep,
  kExitCode,
  kSpent,
  kWords = kSpent + kProgressPhases
};
constexpr std::int64_t kMostRanks = 1 << 24;

using Raw = std::array<std::uint64_t, kWords>;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

template <class To>
To bits(std::uint64_t word) {
  To value;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

std::uint64_t word_of(std::int64_t value) { return static_cast<std::uint64_t>(value); }
std::int64_t number_of(std::uint64_t word) { return static_cast<std::int64_t>(word); }

Raw encode(const Progress& p) {
  Raw raw{};
  raw[kMagicWord] = kMagic;
  raw[kPid] = word_of(p.pid);
  raw[kRank] = word_of(p.rank);
  raw[kAttempt] = word_of(p.attempt);
  raw[kStep] = word_of(p.step);
  raw[kBegunAt] = word_of(p.begun_at);
  raw[kPhase] = static_cast<std::uint64_t>(p.phase);
  std::memcpy(&raw[kDeadline], &p.deadline_seconds, sizeof(double));
  raw[kChanges] = word_of(p.changes);
  raw[kCreated] = word_of(p.created_ns);
  raw[kChanged] = word_of(p.changed_ns);
  raw[kFirstStep] = word_of(p.first_step_ns);
  raw[kExitCode] = word_of(p.exit_code);
  for (std::size_t i = 0; i < kProgressPhases; ++i) {
    raw[kSpent + i] = word_of(p.spent_ns[i]);
  }
  return raw;
}

std::optional<Progress> decode(const Raw& raw) {
  Progress p;
  p.pid = number_of(raw[kPid]);
  p.attempt = number_of(raw[kAttempt]);
  p.step = number_of(raw[kStep]);
  p.begun_at = number_of(raw[kBegunAt]);
  p.deadline_seconds = bits<double>(raw[kDeadline]);
  p.changes = number_of(raw[kChanges]);
  p.created_ns = number_of(raw[kCreated]);
  p.changed_ns = number_of(raw[kChanged]);
  p.first_step_ns = number_of(raw[kFirstStep]);
  bool good = raw[kMagicWord] == kMagic && p.pid > 0 && p.pid <= (1 << 30) && p.attempt >= 0 &&
              p.step >= 0 && p.begun_at >= 0 && raw[kPhase] < kProgressPhases &&
              p.deadline_seconds >= 0 && p.deadline_seconds < 1e9 && p.changed_ns >= p.created_ns &&
              p.created_ns >= 0 && raw[kExitCode] < 256 &&
              raw[kRank] < static_cast<std::uint64_t>(kMostRanks);
  for (std::size_t i = 0; i < kProgressPhases; ++i) {
    p.spent_ns[i] = number_of(raw[kSpent + i]);
    good = good && p.spent_ns[i] >= 0;
  }
  if (!good) {
    return std::nullopt;
  }
  p.rank = static_cast<int>(raw[kRank]);
  p.exit_code = static_cast<int>(raw[kExitCode]);
  p.phase = static_cast<ProgressPhase>(raw[kPhase]);
  return p;
}

std::optional<std::int64_t> number_in_environment(const char* name) {
  const char* text = std::getenv(name);  // before any thread
  if (text == nullptr || *text < '0' || *text > '9') {
    return std::nullopt;
  }
  return std::strtoll(text, nullptr, 10);
}

// Throws PolicyError if the folder exists but others could write to it: checkpoints and progress
// pages in it are trusted, and old ones are removed.
void check_node_folder(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) {
    return;
  }
  struct stat root {};
  const bool is_root =
      ::stat("/", &root) == 0 && root.st_dev == status.st_dev && root.st_ino == status.st_ino;
  const char* const why = is_root                           ? "is the root of the file system"
                          : status.st_uid != ::geteuid()    ? "belongs to another user"
                          : (status.st_mode & S_IWOTH) != 0 ? "can be written to by any user"
                                                            : nullptr;
  if (why != nullptr) {
    throw PolicyError(
        fmt::format("{} {}: name a folder of this run alone, on a tmpfs, or unset "
                    "the variable",
                    folder.string(), why));
  }
}

}  // namespace

struct ProgressPage::Words {
  std::array<std::atomic<std::uint64_t>, kWords> at;
};

std::string_view name_of(ProgressPhase phase) { return kNames.at(static_cast<std::size_t>(phase)); }

std::optional<ProgressPhase> parse_progress_phase(std::string_view word) {
  for (std::size_t i = 0; i < kProgressPhases; ++i) {
    if (kNames[i] == word) {
      return static_cast<ProgressPhase>(i);
    }
  }
  return std::nullopt;
}

ProgressPage::ProgressPage(const fs::path& path, int rank, std::int64_t attempt) {
  make_directories(path.parent_path());
  now_.pid = ::getpid();
  now_.rank = rank;
  now_.attempt = attempt;
  now_.created_ns = now_.changed_ns = now_ns();
  const fs::path draft = fmt::format("{}.{}", path.string(), now_.pid);
  ::unlink(draft.c_str());
  File file = File::create_new(draft);
  const std::string zeros(kProgressBytes, '\0');
  file.write(zeros.data(), static_cast<std::int64_t>(zeros.size()));
  void* const mapped =
      ::mmap(nullptr, kProgressBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (mapped == MAP_FAILED) {
    throw_errno(errno, "map", draft);
  }
  words_ = new (mapped) Words;
  publish();
  if (::rename(draft.c_str(), path.c_str()) != 0) {
    const int code = errno;
    ::munmap(mapped, kProgressBytes);
    throw_errno(code, "rename", draft);
  }
}

ProgressPage::~ProgressPage() { ::munmap(words_, kProgressBytes); }

void ProgressPage::note(ProgressPhase phase, std::int64_t step, double deadline_seconds) {
  const std::int64_t now = now_ns();
  now_.spent_ns[static_cast<std::size_t>(now_.phase)] += now - now_.changed_ns;
  if (now_.phase == ProgressPhase::train && step > now_.step && now_.first_step_ns == 0) {
    now_.first_step_ns = now;
  }
  if (now_.first_step_ns == 0) {
    now_.begun_at = step;  // steps that were loaded, not computed
  }
  now_.changed_ns = now;
  now_.phase = phase;
  now_.step = step;
  now_.deadline_seconds = deadline_seconds;
  ++now_.changes;
  publish();
}

void ProgressPage::note_error(int exit_code) {
  now_.exit_code = exit_code;
  publish();
}

void ProgressPage::publish() {
  const Raw raw = encode(now_);
  const std::uint64_t sequence = words_->at[kSequence].load(std::memory_order_relaxed);
  words_->at[kSequence].store(sequence + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < kWords; ++i) {
    if (i != kSequence) {
      // With release order, no word is visible before the odd sequence number.
      words_->at[i].store(raw[i], std::memory_order_release);
    }
  }
  words_->at[kSequence].store(sequence + 2, std::memory_order_release);
}

// Each read copies the whole file, so that a truncated or foreign page can't cause a fault.
std::optional<Progress> read_progress(const fs::path& path) {
  constexpr int kAttempts = 100;
  try {
    const File file = File::open_to_read(path);
    if (file.size() != static_cast<std::int64_t>(kProgressBytes)) {
      return std::nullopt;
    }
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Raw first{};
      Raw second{};
      file.read_exactly_at(0, first.data(), sizeof(Raw));
      file.read_exactly_at(0, second.data(), sizeof(Raw));
      if (first == second && first[kSequence] % 2 == 0) {
        return decode(first);
      }
    }
  } catch (const Error&) {
    // The page was removed or replaced meanwhile.
  }
  return std::nullopt;
}

fs::path progress_folder(const fs::path& node_folder) { return node_folder / "progress"; }

fs::path progress_file(const fs::path& node_folder, int rank) {
  return progress_folder(node_folder) / fmt::format("rank-{:05}", rank);
}

std::unique_ptr<ProgressPage> progress_page_of_environment() {
  const char* folder = std::getenv("TRIREME_NODE_DIR");  // before any thread
  if (folder == nullptr || *folder == '\0') {
    return nullptr;
  }
  std::int64_t rank = 0;
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}) {
    if (const auto number = number_in_environment(name)) {
      rank = *number;
      break;
    }
  }
  check_node_folder(folder);
  const std::int64_t attempt = number_in_environment("TRIREME_GENERATION").value_or(0);
  return std::make_unique<ProgressPage>(progress_file(folder, static_cast<int>(rank)),
                                        static_cast<int>(rank), attempt);
}

}  // namespace trireme
