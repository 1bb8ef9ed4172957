#include "pbs_commands/named.hpp"

#include "slurm_commands/commands.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>

namespace hpcbatch::pbs_commands {

using slurm_commands::Job;
using slurm_commands::JobName;

Named named_by(const std::vector<std::string>& words) {
  Named named;
  for (const std::string& word : words) {
    if (std::isdigit(static_cast<unsigned char>(word.front())) == 0) {
      // Of `workq@server` the queue.
      if (const std::string queue = word.substr(0, word.find('@')); !queue.empty())
        named.queues.push_back(queue);
      continue;
    }
    auto name = parse_pbs_name(word);
    if (name && slurm_commands::is_ours(name->job))
      named.ours.push_back(std::move(*name));
    else
      named.real.push_back(word);
  }
  return named;
}

std::vector<Job> jobs_meant(slurm_commands::EngineJobs& engine, const std::vector<PbsName>& names) {
  std::vector<JobName> whole;
  for (const PbsName& name : names) {
    const auto is_it = [&](const JobName& one) { return one.number == name.job.number; };
    if (std::none_of(whole.begin(), whole.end(), is_it))
      whole.push_back({name.job.number, std::nullopt, ""});
  }
  std::vector<Job> jobs = whole.size() <= slurm_commands::kNamesOneByOne
                              ? slurm_commands::find_named(engine, whole, true, std::nullopt)
                              : slurm_commands::jobs_of(engine.open_and_ended_since(1), true);
  std::stable_sort(jobs.begin(), jobs.end(),
                   [](const Job& one, const Job& other) { return one.id < other.id; });
  return jobs;
}

int complain_of_unknown(const std::string& command, const std::string& text) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: Unknown Job Id %s\n", command.c_str(), text.c_str());
  return kUnknownJob;
}

int call_real(const slurm_commands::Call& call, const Named& named) {
  std::vector<std::string> words;
  for (const std::string& word : call.words) {
    const auto name = parse_pbs_name(word);
    const bool is_ours = name && slurm_commands::is_ours(name->job);
    if (!is_ours && word != "--real") words.push_back(word);
  }
  if (const auto code = slurm_commands::run_real(call, words)) return *code;
  int code = 0;
  for (const std::string& one : named.real) code = complain_of_unknown(call.command, one);
  return code;
}

}  // namespace hpcbatch::pbs_commands
