// ScratchFolders are the folders in which a benchmark writes what it measures with. They are
// removed when this object is destroyed, and also when a signal (interruption.h, or SIGPIPE) ends
// the process or its mpirun is gone: a thread waits for that, removes the folders, and ends the
// process by the signal or by SIGTERM. Only one object may exist in a process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "src/base/interruption.h"

namespace trireme {

class ScratchFolders {
 public:
  // Throws ResourceError if no thread can be started.
  ScratchFolders();
  ~ScratchFolders();
  ScratchFolders(const ScratchFolders&) = delete;
  ScratchFolders& operator=(const ScratchFolders&) = delete;

  // Makes a new folder. A mistyped path could be on another disk than the one to measure, so
  // `within` must exist. Throws NotFound, PolicyError or IoError.
  std::filesystem::path make(const std::filesystem::path& within);
  // Takes a folder over that this process has made.
  void adopt(const std::filesystem::path& folder);
  // Names a folder that another rank removes. A signal ends this process after that, because mpirun
  // kills all ranks as soon as it has sent a signal and one of them has ended.
  void await(const std::filesystem::path& folder);
  // Removes the folders of this process, or gives up after `patience`, as a file system may
  // hang. Can be called once, on any thread, which has to end the process then.
  static void remove_before_exit(std::chrono::duration<double> patience);
  // is_so: whether another thread ends the process after a signal. The objects then remove their
  // folders and leave the end to it.
  static void leave_end_to_another(bool is_so);
  // Removes the folder of another rank, if an error has destroyed the object of this one: srun
  // kills the other rank before it can do so. Call this after the error has been reported, because
  // ranks that go on fail without their folder. Gives up after `patience`.
  static void remove_abandoned(std::chrono::duration<double> patience);

 private:
  void wait_for_signal();
  // Returns whether all folders are gone, also that of another rank.
  bool remove_all();

  NotedSignals noted_{SIGPIPE};  // what reads the output may close the pipe
  std::mutex mutex_;             // guards the next two
  std::condition_variable changed_;
  bool is_over_ = false;
  std::vector<std::filesystem::path> folders_;
  std::filesystem::path awaited_;
  int uncaught_at_start_;
  std::thread thread_;
};

}  // namespace trireme
