#include "io/checkpoint/steps_to_try.h"

#include <sstream>

#include "io/checkpoint/store.h"
#include "mpi/agreement.h"

namespace trireme {

std::vector<std::filesystem::path> steps_to_try(const std::filesystem::path& directory,
                                                Communicator& world,
                                                std::vector<std::string>& skipped) {
  const std::string text = run_on_root(world, [&] {
    std::string paths;
    for (const StepFolder& step : find_steps(directory, skipped)) {
      paths += step.path.string() + '\0';
    }
    return paths;
  });
  std::vector<std::filesystem::path> paths;
  std::istringstream stream(text);
  for (std::string path; std::getline(stream, path, '\0');) {
    paths.emplace_back(path);
  }
  return paths;
}

}  // namespace trireme
