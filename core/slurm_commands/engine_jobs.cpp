#include "slurm_commands/engine_jobs.hpp"

#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/values.hpp"
#include "slurm_commands/options.hpp"

#include <hpcbatch/text.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::slurm_commands {
namespace {

namespace json = boost::json;

/// The most that there are in one answer: from one page to the next an element that starts, or ends,
/// may change its place.
constexpr std::size_t kPage = 100'000;
/// Commands that call each other without an end are ended after so many within a minute: how often it
/// was, and since when, goes along as COUNT:SECONDS, into jobs of the cluster, too.
constexpr int kMostCalls = 8;
constexpr std::int64_t kCallsCount = 60;
constexpr const char* kCalls = "HPCBATCH_SLURM_CALLS";
constexpr int kNotFound = 127;

std::string own_user(uid_t user) {
  const passwd* entry = ::getpwuid(user);
  return entry == nullptr ? std::to_string(user) : entry->pw_name;
}

std::string own_group(gid_t group) {
  const struct group* entry = ::getgrgid(group);
  return entry == nullptr ? std::to_string(group) : entry->gr_name;
}

bool is_this_program(const std::string& file) {
  struct stat one {
  }, other{};
  return ::stat(file.c_str(), &one) == 0 && ::stat("/proc/self/exe", &other) == 0 &&
         one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// That of two installations another program of ours is found.
bool is_of_ours(const std::string& file) {
  std::error_code error;
  const auto whole = std::filesystem::canonical(file, error);
  return !error && (whole.filename() == "hpcbatch-slurm" || whole.filename() == "hpcbatch-pbs");
}

std::vector<std::string> variables_for_real(const Call& call) {
  int calls = 0;
  std::int64_t since = 0;
  const std::string before = variable(call, kCalls);
  const char* const end = before.data() + before.size();
  const char* const colon = std::from_chars(before.data(), end, calls).ptr;
  if (colon != end) std::from_chars(colon + 1, end, since);
  const auto now = static_cast<std::int64_t>(now_in_seconds());
  if (since > now || now - since > kCallsCount) {
    calls = 0;
    since = now;
  }
  if (calls >= kMostCalls)
    throw CommandFailed(call.command + ": error: it and " + real_command(call) +
                            " call each other; call the one that is meant by its whole path",
                        kNotFound);
  std::vector<std::string> lines;
  for (const auto& [name, value] : call.environment) {
    if (name == kCalls) continue;
    lines.push_back(name);
    lines.back().append("=").append(value);
  }
  lines.push_back(std::string(kCalls) + "=" + std::to_string(calls + 1) + ":" +
                  std::to_string(since));
  return lines;
}

std::string ended_since(double since) {
  return "&open=1&ended_since=" + std::to_string(static_cast<std::int64_t>(since));
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> all;
  all.reserve(texts.size() + 1);
  for (std::string& text : texts) all.push_back(text.data());
  all.push_back(nullptr);
  return all;
}

}  // namespace

std::string variable(const Call& call, const char* name) {
  const auto at = call.environment.find(name);
  return at == call.environment.end() ? "" : at->second;
}

void print_text(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
}

double now_in_seconds() {
  using std::chrono::duration;
  return duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

Viewed viewed_by(const Call& call) {
  Viewed viewed;
  viewed.now = now_in_seconds();
  viewed.uid = ::getuid();
  viewed.gid = ::getgid();
  viewed.user = own_user(viewed.uid);
  viewed.group = own_group(viewed.gid);
  viewed.time_format = variable(call, "SLURM_TIME_FORMAT");
  return viewed;
}

bool is_own_user(const std::string& user, const Viewed& viewed) {
  return user == viewed.user || user == std::to_string(viewed.uid);
}

EngineJobs::EngineJobs(const Session& session) : session_(session), client_(session.client()) {}

EngineClient& EngineJobs::client() {
  if (!is_connected_) {
    connect_or_start(client_, session_.places, session_.interrupt, Lifetime::UntilIdle);
    is_connected_ = true;
  }
  return client_;
}

json::array EngineJobs::paged(const std::string& question) {
  json::array all;
  const std::string target = "/v1/tasks?full=1&limit=" + std::to_string(kPage) + question +
                             (tells_files_ ? "&files=1" : "");
  std::string next = target;
  for (;;) {
    const json::object answer = client().get(next);
    const json::array* lines = array_at(answer, "tasks");
    if (lines == nullptr) return all;
    all.insert(all.end(), lines->begin(), lines->end());
    if (lines->size() < kPage) return all;
    std::string last = text_at(lines->back().as_object(), "id");
    // The beginning of a range.
    last = last.substr(0, last.find('-'));
    next = target;
    next.append("&before=").append(last);
  }
}

json::array EngineJobs::open_jobs() {
  return paged("&open=1");
}

json::array EngineJobs::open_and_ended_since(double since) {
  return paged(ended_since(since));
}

std::optional<json::array> EngineJobs::lines_of(std::uint64_t id, std::optional<double> since) {
  const Answer answer = client().http().request("GET", "/v1/arrays/" + std::to_string(id), "",
                                                EngineClient::kAnswerTime);
  constexpr int kNotThere = 404;
  if (answer.outcome == Exchange::Answered && answer.status == kNotThere) return std::nullopt;
  client().object_of(answer);
  return paged("&array=" + std::to_string(id) + (since ? ended_since(*since) : ""));
}

std::optional<std::uint64_t> EngineJobs::array_holding(std::uint64_t id) {
  const json::object answer = client().get("/v1/arrays?limit=1&before=" + std::to_string(id));
  const json::array* arrays = array_at(answer, "arrays");
  if (arrays == nullptr || arrays->empty()) return std::nullopt;
  const json::object& array = arrays->front().as_object();
  const std::uint64_t first = number_in<std::uint64_t>(text_at(array, "id")).value_or(0);
  if (static_cast<double>(id - first) >= number_at(array, "total")) return std::nullopt;
  return first;
}

json::array EngineJobs::lines_of(const JobName& name, std::optional<double> since) {
  const auto id = id_of_batch_number(name.number);
  if (!id) return {};
  if (auto lines = lines_of(id->value, since)) return std::move(*lines);
  const auto array = array_holding(id->value);
  return array ? lines_of(*array, since).value_or(json::array{}) : json::array{};
}

bool is_ours(const JobName& name) {
  return name.number > kBatchNumbers;
}

std::string real_command(const Call& call) {
  for (const std::string& folder : split_at(variable(call, "PATH"), ':')) {
    std::string file = folder;
    file.append("/").append(call.command);
    if (has_own_commands(folder) || ::access(file.c_str(), X_OK) != 0) continue;
    if (!is_this_program(file) && !is_of_ours(file)) return file;
  }
  return "";
}

void become_real(const Call& call, const std::vector<std::string>& words) {
  const std::string file = real_command(call);
  if (file.empty())
    throw CommandFailed(call.command + ": error: there is no other " + call.command +
                            " in PATH that this could be handed to",
                        kNotFound);
  std::vector<std::string> texts = words, variables = variables_for_real(call);
  texts.insert(texts.begin(), call.command);
  const std::vector<char*> arguments = pointers(texts), environment = pointers(variables);
  ::execve(file.c_str(), arguments.data(), environment.data());
  throw CommandFailed(call.command + ": error: cannot run " + file + ": " + std::strerror(errno),
                      kNotFound);
}

std::optional<int> run_real(const Call& call, const std::vector<std::string>& words) {
  if (real_command(call).empty()) return std::nullopt;
  std::fflush(nullptr);
  const pid_t process = ::fork();
  if (process < 0) return std::nullopt;
  if (process == 0) {
    try {
      become_real(call, words);
    } catch (const CommandFailed& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(kNotFound);
    }
  }
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool is_for_real(const Call& call) {
  const std::string said = variable(call, call.real);
  return !said.empty() && said != "0" && said != "show";
}

bool shows_real(const Call& call) {
  return variable(call, call.real) == "show";
}

}  // namespace hpcbatch::slurm_commands
