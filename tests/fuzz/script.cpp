// Batch scripts with lines for sbatch and for us.
#include "cli/parse/script.hpp"
#include "fuzz/harness.hpp"

#include <stdexcept>

HPCBATCH_HARNESS(script, bytes) {
  try {
    const Script script = read_script(std::string(bytes), "/w/job.sh", {"argument"});
    check(!script.command.empty() && script.command.back() == "argument",
          "arguments are the script's");
    check(script.options.size() <= bytes.size() + 2, "no more options than bytes");
  } catch (const std::invalid_argument&) {
  }
}
