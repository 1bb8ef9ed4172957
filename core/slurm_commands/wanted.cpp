#include "slurm_commands/wanted.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <array>
#include <string_view>

#include <pwd.h>

namespace hpcbatch::slurm_commands {
namespace {

/// Whether accounting knows who was in that state.
bool is_accounted(const std::string& said) {
  const std::string word = upper_case(said);
  constexpr std::array<std::string_view, 18> kPassing{
      "CG", "COMPLETING",  "CF", "CONFIGURING",  "RD", "RESV_DEL_HOLD",
      "RF", "REQUEUE_FED", "RH", "REQUEUE_HOLD", "SI", "SIGNALING",
      "SO", "STAGE_OUT",   "ST", "STOPPED",      "SE", "SPECIAL_EXIT"};
  return std::find(kPassing.begin(), kPassing.end(), word) == kPassing.end();
}

}  // namespace

States states_in(const std::vector<std::string>& words, const std::string& command) {
  std::set<JobState> states;
  for (const std::string& word : words) {
    const bool is_accounting = command == "sacct";
    if (!is_accounting && (word == "all" || word == "ALL")) return std::nullopt;
    if (is_accounting && is_slurm_state(word) && !is_accounted(word))
      throw CommandFailed("sacct: fatal: job state " + word + " is not supported / accounted");
    if (const auto state = parse_job_state(word)) {
      states.insert(*state);
    } else if (!is_slurm_state(word)) {
      throw CommandFailed(
          is_accounting
              ? std::string("sacct: fatal: unrecognized job state value '").append(word).append("'")
              : std::string(command).append(": error: Invalid job state specified: ").append(word));
    }
  }
  return states;
}

bool Wanted::admits(const Job& job, const Viewed& viewed) const {
  const auto has = [](const Words& words, const std::string& text) {
    return !words || words->contains(text);
  };
  return !nobody && (!states || states->contains(job.state)) && has(names, job.name) &&
         has(partitions, job.partition.empty() ? viewed.default_partition : job.partition) &&
         has(accounts, job.account) && has(qos, job.qos.empty() ? "normal" : job.qos) &&
         has(nodes, job.node);
}

Words words_of(const Parsed& parsed, const char* option) {
  if (!parsed.has(option)) return std::nullopt;
  const std::vector<std::string> words = parsed.list(option);
  return std::set<std::string, std::less<>>{words.begin(), words.end()};
}

Words words_of(const Parsed& parsed, const char* option, const Call& call, const char* name) {
  const std::string text = variable(call, name);
  if (parsed.has(option) || text.empty()) return words_of(parsed, option);
  const std::vector<std::string> words = split_at(text, ',');
  return std::set<std::string, std::less<>>{words.begin(), words.end()};
}

bool is_for_others(const Words& users, const Viewed& viewed) {
  return users && std::none_of(users->begin(), users->end(),
                               [&](const std::string& user) { return is_own_user(user, viewed); });
}

void check_users(const Words& users, const std::string& complaint) {
  for (const std::string& user : users.value_or(std::set<std::string, std::less<>>{})) {
    const bool is_number = user.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number && ::getpwnam(user.c_str()) == nullptr) throw CommandFailed(complaint + user);
  }
}

}  // namespace hpcbatch::slurm_commands
