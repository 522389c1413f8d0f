// ProgressPage: what a rank does now, in a small file that is mapped into memory, for whoever
// watches the rank from outside: a rank that is stopped or spins still lives, but its page stands
// still. One writer, one thread at a time; readers are other processes of this host, any number, at
// any time. Writing costs some tens of nanoseconds and never waits.
//
// A file of kProgressBytes: 64-bit words of this machine's byte order, in the order of
// progress_page.cc. The second counts writes and is odd during one (a seqlock: Lameter 2005).
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
// Nothing for another word.
std::optional<ProgressPhase> parse_progress_phase(std::string_view word);

struct Progress {
  std::int64_t pid = 0;
  int rank = 0;
  std::int64_t generation = 0;  // of the attempt (TRIREME_GENERATION)
  std::int64_t step = 0;        // the last one done
  std::int64_t begun_at = 0;    // the step from which this attempt went on
  ProgressPhase phase = ProgressPhase::start;
  double deadline_seconds = 0;  // until which the next change is due; 0: none was promised
  std::int64_t changes = 0;
  std::int64_t created_ns = 0;  // of the steady clock of the host
  std::int64_t changed_ns = 0;
  std::int64_t first_step_ns = 0;                        // when the first step was done; 0: not yet
  std::array<std::int64_t, kProgressPhases> spent_ns{};  // in each phase, up to changed_ns
  int exit_code = 0;  // of an error, with which the rank is about to end; 0: none yet
};

class ProgressPage {
 public:
  // Appears whole under its name, in the place of an earlier one. Throws as files do.
  ProgressPage(const std::filesystem::path& path, int rank, std::int64_t generation);
  ~ProgressPage();
  ProgressPage(const ProgressPage&) = delete;
  ProgressPage& operator=(const ProgressPage&) = delete;

  // This is progress: the next is due within `deadline_seconds`.
  void note(ProgressPhase phase, std::int64_t step, double deadline_seconds);
  // For who is told only that the rank has gone.
  void note_error(int exit_code);

 private:
  struct Words;
  void publish();

  Words* words_ = nullptr;
  Progress now_;
};

// Nothing where there is no page, or anything else than one, or no quiet moment to read it.
std::optional<Progress> read_progress(const std::filesystem::path& path);

// <node folder>/progress, and rank-00005 therein.
std::filesystem::path progress_folder(const std::filesystem::path& node_folder);
std::filesystem::path progress_file(const std::filesystem::path& node_folder, int rank);

// The page of this process, as its launcher asks for it by TRIREME_NODE_DIR and TRIREME_GENERATION;
// the rank as the starter of MPI jobs numbers it. Null where nobody asks.
std::unique_ptr<ProgressPage> progress_page_of_environment();

}  // namespace trireme
