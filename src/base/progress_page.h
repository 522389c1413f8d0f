// ProgressPage publishes what a rank is doing in a small file mapped into memory, for processes
// that watch the rank: a stopped or spinning rank is still alive, but its page no longer changes.
// There is one writer, one thread at a time, and any number of readers in other processes of this
// host. Writing takes some tens of nanoseconds and never waits.
//
// The file has kProgressBytes: 64-bit words in this machine's byte order, as listed in
// progress_page.cc. The second word counts writes and is odd during a write (a seqlock: Lameter
// 2005).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string_view>

namespace trireme {

inline constexpr std::size_t kProgressBytes = 4096;

enum class ProgressPhase : std::uint8_t { start, load, train, evaluate, checkpoint, end };
inline constexpr std::size_t kProgressPhases = 6;
std::string_view name_of(ProgressPhase phase);
// Returns nothing for an unknown word.
std::optional<ProgressPhase> parse_progress_phase(std::string_view word);

struct Progress {
  std::int64_t pid = 0;
  int rank = 0;
  std::int64_t attempt = 0;   // attempt of the launch (TRIREME_GENERATION)
  std::int64_t step = 0;      // last completed step
  std::int64_t begun_at = 0;  // step at which this attempt started
  ProgressPhase phase = ProgressPhase::start;
  double deadline_seconds = 0;  // time within which the next change is due; 0: unlimited
  std::int64_t changes = 0;
  std::int64_t created_ns = 0;  // on the host's steady clock
  std::int64_t changed_ns = 0;
  std::int64_t first_step_ns = 0;                        // end of the first step; 0: none yet
  std::array<std::int64_t, kProgressPhases> spent_ns{};  // time in each phase, up to changed_ns
  int exit_code = 0;  // exit code of an error that is about to end the rank; 0: none
};

class ProgressPage {
 public:
  // Creates the page under its name at once complete, replacing an earlier one. Throws like File.
  ProgressPage(const std::filesystem::path& path, int rank, std::int64_t attempt);
  ~ProgressPage();
  ProgressPage(const ProgressPage&) = delete;
  ProgressPage& operator=(const ProgressPage&) = delete;

  // Records progress; the next call is due within `deadline_seconds`.
  void note(ProgressPhase phase, std::int64_t step, double deadline_seconds);
  // Records the exit code of an error, for watchers that see only that the rank has gone.
  void note_error(int exit_code);

 private:
  struct Words;
  void publish();

  Words* words_ = nullptr;
  Progress now_;
};

// Returns nothing if there is no page, the file is not a page, or it kept changing while it was
// read.
std::optional<Progress> read_progress(const std::filesystem::path& path);

// Return <node folder>/progress, and rank-00005 in that folder.
std::filesystem::path progress_folder(const std::filesystem::path& node_folder);
std::filesystem::path progress_file(const std::filesystem::path& node_folder, int rank);

// Creates the page of this process if its launcher asks for one by TRIREME_NODE_DIR and
// TRIREME_GENERATION; otherwise returns null. The rank is the one that the MPI launcher assigned.
// Throws PolicyError if the folder is not this user's alone.
std::unique_ptr<ProgressPage> progress_page_of_environment();

}  // namespace trireme
