#include "estimate/training.hpp"

#include "cli/client/engine_client.hpp"
#include "cli/process/process.hpp"
#include "cli/show/values.hpp"
#include "documents/state_paths.hpp"
#include "foresight/learned/features.hpp"
#include "foresight/learned/wait_model.hpp"
#include "plugin_host/guarded.hpp"
#include "posix/files.hpp"
#include "posix/programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hpcbatch::estimate {
namespace {

void put(std::string& bytes, std::string_view text) {
  const std::uint64_t size = text.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}
template <class Number>
void put(std::string& bytes, const std::vector<Number>& numbers) {
  put(bytes, std::string_view(reinterpret_cast<const char*>(numbers.data()),
                              numbers.size() * sizeof(Number)));
}

std::string_view taken(std::string_view& bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) throw std::invalid_argument("the table to learn from is cut off");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (bytes.size() < size) throw std::invalid_argument("the table to learn from is cut off");
  const std::string_view text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return text;
}
template <class Number>
std::vector<Number> taken_numbers(std::string_view& bytes) {
  const std::string_view text = taken(bytes);
  std::vector<Number> numbers(text.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), text.data(), numbers.size() * sizeof(Number));
  return numbers;
}

constexpr int kLowestPriority = 19;
constexpr std::size_t kMostSaid = 500;

Error failed(std::string_view tried, int error) {
  return {Error::Kind::Transient, fmt::format("cannot {}: {}", tried, std::strerror(error))};
}

std::string read_whole(int descriptor) {
  std::string text;
  if (const int error = read_all(descriptor, text))
    throw std::runtime_error(std::string("cannot read: ") + std::strerror(error));
  return text;
}

std::string read_from_start(int descriptor) {
  ::lseek(descriptor, 0, SEEK_SET);
  return read_whole(descriptor);
}

/// Files in memory, not pipes: neither side waits for the other, however much there is.
struct Streams {
  Fd in{::memfd_create("lesson", MFD_CLOEXEC)};
  Fd out{::memfd_create("model", MFD_CLOEXEC)};
  Fd error{::memfd_create("said", MFD_CLOEXEC)};
};

Result<pid_t> spawn(const TrainingProcess& process, const Streams& streams) {
  pid_t child = 0;
  const int error =
      spawn_program({"hpcbatch-estimate", "train", process.estimator, std::to_string(::getpid())},
                    {.program = process.program,
                     .input = streams.in.get(),
                     .output = streams.out.get(),
                     .error = streams.error.get()},
                    child);
  if (error != 0) return failed("start " + process.program + " to train a model", error);
  return child;
}

/// Its status; nothing where it had to be killed.
std::optional<int> wait_for(pid_t child, std::chrono::milliseconds longest) {
  // glibc 2.36 declares pidfd_open without extern "C".
  const Fd end(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  const auto until = std::chrono::steady_clock::now() + longest;
  bool has_ended = false;
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
    pollfd wait{end.get(), POLLIN, 0};
    const int count = left.count() <= 0 ? 0 : ::poll(&wait, 1, static_cast<int>(left.count()));
    if (count < 0 && errno == EINTR) continue;
    has_ended = count > 0;
    break;
  }
  if (!has_ended) ::kill(child, SIGKILL);
  const int status = wait_for_end(child);
  return has_ended ? std::optional(status) : std::nullopt;
}

Error died(const TrainingProcess& process, std::optional<int> status, std::string said) {
  said = said.substr(0, std::min(said.find('\n'), kMostSaid));
  if (!status)
    return {Error::Kind::Transient, fmt::format("training with {} took over {} s and was ended",
                                                process.estimator, process.longest.count())};
  if (WIFSIGNALED(*status))
    return {Error::Kind::Transient,
            fmt::format("training with {} was ended by SIG{}", process.estimator,
                        ::sigabbrev_np(WTERMSIG(*status)))};
  return {Error::Kind::Rejected, said.empty() ? "training ended without a model" : said};
}

namespace json = boost::json;
using namespace std::chrono_literals;
using foresight::Seconds;

/// An answer is bounded: of a longer time a busy site would tell but the beginning.
constexpr Seconds kPart = 6 * foresight::kHour;
constexpr Seconds kShortestPart = 5 * foresight::kMinute;
constexpr auto kAnswerWithin = 120s;
constexpr int kTries = 3;
constexpr int kNotNow = 503;
constexpr auto kAfterFailure = 5s;

struct Asked {
  std::string site, estimator;
  std::int64_t days{30};
  bool json{false};
};

Asked asked_by(const json::value& value) {
  const json::object& object = value.as_object();
  return {std::string(object.at("site").as_string()),
          std::string(object.at("estimator").as_string()), object.at("days").as_int64(),
          object.at("json").as_bool()};
}

/// Asks the engine for what accounting keeps, a part of the time after another.
class Collecting {
 public:
  Collecting(const Places& places, std::string site, Seconds first)
      : client_(places, interrupt_.descriptor()), site_(std::move(site)), first_(first) {}

  /// Adds those that came in that time, once each, and at the beginning those that were there.
  void add_part(Seconds from, Seconds until) {
    const json::object answer = asked(from, until);
    if (answer.at("cut").as_bool() && until - from > kShortestPart) {
      const Seconds middle = std::midpoint(from, until);
      add_part(from, middle);
      add_part(middle, until);
      return;
    }
    for (PastJob& job : foresight::past_jobs(answer.at("jobs").as_string())) {
      // Those that ran on from an earlier part are told again.
      const Seconds came = std::max(job.submitted, job.eligible).count();
      const bool was_there = from == first_ && came < from;
      if (was_there || (came >= from && came < until)) jobs_.push_back(std::move(job));
    }
  }
  std::vector<PastJob> take() { return std::move(jobs_); }

 private:
  /// Others have their turns at the site in between; what fails once may not fail again.
  json::object asked(Seconds from, Seconds until) {
    for (int tried = 1;; ++tried) {
      const auto began = std::chrono::steady_clock::now();
      const Answer answer = client_.http().request(
          "GET", fmt::format("/v1/sites/{}/past-jobs?from={}&until={}", site_, from, until), {},
          kAnswerWithin);
      const bool may_pass = answer.status == kNotNow || answer.outcome == Exchange::TimedOut ||
                            answer.outcome == Exchange::Lost;
      if (may_pass && tried < kTries) {
        interrupt_.pause(kAfterFailure);
        continue;
      }
      json::object jobs = client_.object_of(answer);
      interrupt_.pause(std::chrono::duration_cast<std::chrono::milliseconds>(
          std::chrono::steady_clock::now() - began));
      return jobs;
    }
  }

  Interrupt interrupt_;
  EngineClient client_;
  std::string site_;
  Seconds first_;
  std::vector<PastJob> jobs_;
};

std::vector<PastJob> collect(const Places& places, const Asked& asked, Seconds first, Seconds now,
                             const LearnProgress& progress) {
  Collecting collecting(places, asked.site, first);
  const auto parts = static_cast<std::size_t>((now - first + kPart - 1) / kPart);
  for (std::size_t part = 0; part < parts; ++part) {
    progress("reading accounting", part, parts);
    const Seconds from = first + static_cast<Seconds>(part) * kPart;
    collecting.add_part(from, std::min(from + kPart, now));
  }
  progress("reading accounting", parts, parts);
  return collecting.take();
}

/// Trains in a process of its own; what that has made is loaded here.
Result<Teacher> teacher_of(const PluginHost& plugins, const std::string& name) {
  auto made = plugins.estimator(name, "");
  if (!made) return made.error();
  const std::shared_ptr<Estimator> estimator = std::move(*made);
  return Teacher{
      .name = name,
      .config_yaml = "",
      .train =
          [name](const TrainingTable& table) {
            return train_apart({.program = "/proc/self/exe", .estimator = name}, {"", table});
          },
      .load = [estimator](const std::string& bytes) { return estimator->load(bytes); }};
}

void keep(const Places& places, const std::string& site, const std::string& bytes) {
  const std::string file = wait_model_path(places.home, site);
  const std::string folder = std::filesystem::path(file).parent_path().string();
  ::mkdir(folder.c_str(), 0700);
  if (const int error = replace_file(AT_FDCWD, file, bytes, {.mode = 0600, .hidden = true}))
    throw CommandError(kExitUsage, fmt::format("cannot write {}: {}", file, std::strerror(error)));
}

json::object found_json(const Asked& asked, const foresight::WaitModelFacts& facts) {
  return {{"site", asked.site},
          {"estimator", facts.estimator},
          {"waits", facts.waits},
          {"from", facts.from},
          {"until", facts.until},
          {"half_life_days", facts.half_life / foresight::kDay},
          {"mean_square", facts.mean_square},
          {"mean_square_medians", facts.mean_square_medians}};
}

using namespace foresight;

/// More teach hardly more and cost minutes.
constexpr std::size_t kMostRows = 40'000;
constexpr std::size_t kFewestRows = 200;
/// Of the waits, what a model is judged on: the newest.
constexpr double kJudged = 0.2;
/// How fast the old is forgotten differs from site to site: what does best on the fifth before that.
constexpr std::array<Seconds, 3> kHalfLives{10 * kDay, 30 * kDay, 60 * kDay};
constexpr std::size_t kSpread = 20;

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// What needs no learning: the median of those that are alike and had started by then.
class PastMedians {
 public:
  PastMedians(const PastLesson& lesson, Seconds now) {
    std::map<std::pair<std::uint32_t, int>, std::vector<double>> alike;
    std::vector<double> all;
    for (const PastWait& wait : lesson.waits) {
      if (!wait.has_started || wait.asked + wait.waited > now) continue;
      alike[wait.alike].push_back(static_cast<double>(wait.waited));
      all.push_back(static_cast<double>(wait.waited));
    }
    for (auto& [key, waits] : alike) of_[key] = median_of(std::move(waits));
    if (!all.empty()) of_all_ = median_of(std::move(all));
  }
  double of(const PastWait& wait) const {
    const auto found = of_.find(wait.alike);
    return found == of_.end() ? of_all_ : found->second;
  }

 private:
  std::map<std::pair<std::uint32_t, int>, double> of_;
  double of_all_{0};
};

/// The rows from `first` on, before `end`.
FeatureTable inputs_of(const PastLesson& lesson, std::size_t first, std::size_t end) {
  FeatureTable table;
  table.features = lesson.inputs.features;
  const auto row = [&](std::size_t at) {
    return lesson.inputs.values.begin() +
           static_cast<std::ptrdiff_t>(at * lesson.inputs.features.size());
  };
  table.values.assign(row(first), row(end));
  return table;
}

std::vector<double> spread_of(const std::vector<double>& told, const PastLesson& lesson,
                              std::size_t first) {
  std::vector<Censored> residuals;
  for (std::size_t at = 0; at < told.size(); ++at) {
    const PastWait& wait = lesson.waits[first + at];
    residuals.push_back(
        {log_of_wait(static_cast<double>(wait.waited)) - log_of_wait(told[at]), !wait.has_started});
  }
  std::vector<double> spread;
  for (std::size_t at = 0; at < kSpread; ++at)
    spread.push_back(
        *quantile_of_censored(residuals, (static_cast<double>(at) + 0.5) / double{kSpread}));
  return spread;
}

Result<std::vector<double>> learned(const Teacher& teacher, const TrainingTable& table,
                                    const FeatureTable& asked) {
  const auto bytes = teacher.train(table);
  if (!bytes) return bytes.error();
  const auto model = teacher.load(*bytes);
  if (!model) return model.error();
  return (*model)->predict(asked);
}

/// Of those that had started from row `first` on, before `end`, where what came before is forgotten so
/// fast.
Result<double> error_with(Seconds half_life, const PastLesson& lesson, std::size_t first,
                          std::size_t end, const Teacher& teacher) {
  const auto told = learned(teacher, known_by(lesson, lesson.waits[first].asked, half_life),
                            inputs_of(lesson, first, end));
  if (!told) return told.error();
  std::vector<double> of_started;
  std::vector<Seconds> waited;
  for (std::size_t at = 0; at < std::min(told->size(), end - first); ++at) {
    if (!lesson.waits[first + at].has_started) continue;
    of_started.push_back((*told)[at]);
    waited.push_back(lesson.waits[first + at].waited);
  }
  return mean_square_of(of_started, waited);
}

Result<Seconds> best_half_life(const PastLesson& lesson, std::size_t end, const Teacher& teacher) {
  const auto first = static_cast<std::size_t>(static_cast<double>(end) * (1 - kJudged));
  Seconds best = kHalfLives.front();
  std::optional<double> least;
  for (const Seconds half_life : kHalfLives) {
    const auto error = error_with(half_life, lesson, first, end, teacher);
    if (!error) return error.error();
    if (least && *error >= *least) continue;
    least = *error;
    best = half_life;
  }
  return best;
}

/// How it does on what came from row `first` on, which it has not seen; or what speaks against it.
Result<void> judge(WaitModelFacts& facts, const PastLesson& lesson, std::size_t first,
                   const Teacher& teacher) {
  const Seconds cut = lesson.waits[first].asked;
  const auto told = learned(teacher, known_by(lesson, cut, facts.half_life),
                            inputs_of(lesson, first, lesson.waits.size()));
  if (!told) return told.error();
  if (told->size() != lesson.waits.size() - first)
    return Error{Error::Kind::Rejected, teacher.name + " did not tell all waits that it was asked"};
  const PastMedians medians(lesson, cut);
  std::vector<double> by_model, by_medians;
  std::vector<Seconds> waited;
  for (std::size_t at = 0; at < told->size(); ++at) {
    const PastWait& wait = lesson.waits[first + at];
    if (!wait.has_started) continue;
    by_model.push_back((*told)[at]);
    by_medians.push_back(medians.of(wait));
    waited.push_back(wait.waited);
  }
  if (const auto why = what_speaks_against(by_model, by_medians, waited))
    return Error{Error::Kind::Rejected, *why};
  facts.mean_square = mean_square_of(by_model, waited);
  facts.mean_square_medians = mean_square_of(by_medians, waited);
  facts.spread = spread_of(*told, lesson, first);
  return {};
}

}  // namespace

std::string to_bytes(const Lesson& lesson) {
  const TrainingTable& table = lesson.table;
  std::string bytes;
  put(bytes, lesson.config_yaml);
  put(bytes, std::to_string(table.inputs.features.size()));
  for (const std::string& name : table.inputs.features) put(bytes, name);
  put(bytes, table.inputs.values);
  put(bytes, table.waited);
  put(bytes, table.weights);
  put(bytes, table.is_pending);
  return bytes;
}

Lesson lesson_of(std::string_view bytes) {
  Lesson lesson;
  lesson.config_yaml = taken(bytes);
  std::size_t columns = std::stoul(std::string(taken(bytes)));
  for (; columns > 0; --columns) lesson.table.inputs.features.emplace_back(taken(bytes));
  lesson.table.inputs.values = taken_numbers<float>(bytes);
  lesson.table.waited = taken_numbers<double>(bytes);
  lesson.table.weights = taken_numbers<float>(bytes);
  lesson.table.is_pending = taken_numbers<std::uint8_t>(bytes);
  if (!bytes.empty()) throw std::invalid_argument("behind the table to learn from stands more");
  return lesson;
}

Result<std::string> train_apart(const TrainingProcess& process, const Lesson& lesson) {
  const Streams streams;
  if (!streams.in || !streams.out || !streams.error)
    return failed("make room to train a model", errno);
  if (const int error = write_all(streams.in.get(), to_bytes(lesson)))
    return failed("hand over what a model is to learn", error);
  ::lseek(streams.in.get(), 0, SEEK_SET);
  const auto child = spawn(process, streams);
  if (!child) return child.error();
  const auto status = wait_for(*child, process.longest);
  if (!status || !WIFEXITED(*status) || WEXITSTATUS(*status) != 0)
    return died(process, status, read_from_start(streams.error.get()));
  return read_from_start(streams.out.get());
}

int train_here(const PluginHost& plugins, const std::string& estimator) {
  ::setpriority(PRIO_PROCESS, 0, kLowestPriority);
  const auto fail = [](const std::string& why) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 1;
  };
  try {
    const Lesson lesson = lesson_of(read_whole(STDIN_FILENO));
    const auto plugin = plugins.estimator(estimator, lesson.config_yaml);
    if (!plugin) return fail(plugin.error().text);
    const auto model = guarded(estimator, [&] { return (*plugin)->train(lesson.table); });
    if (!model) return fail(model.error().text);
    const int error = write_all(STDOUT_FILENO, *model);
    return error == 0 ? 0 : fail(std::string("cannot write the model: ") + std::strerror(error));
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}

int learn_waits(const PluginHost& plugins, const json::value& value,
                const LearnProgress& progress) {
  const Asked asked = asked_by(value);
  const auto places = find_places(own_environment());
  if (!places) throw CommandError(kExitUsage, places.error().text);
  const auto teacher = teacher_of(plugins, asked.estimator);
  if (!teacher) throw CommandError(kExitUsage, teacher.error().text);
  const Seconds now =
      std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  const Seconds first = now - asked.days * foresight::kDay;
  const std::vector<PastJob> jobs = collect(*places, asked, first, now, progress);
  progress("learning", 0, 1);
  const auto learned = learn_site(jobs, first, now, *teacher);
  progress("learning", 1, 1);
  if (!learned)
    throw CommandError(kExitUsage, fmt::format("no model of waits at {} was made: {}", asked.site,
                                               learned.error().text));
  keep(*places, asked.site, foresight::to_bytes(*learned));
  const foresight::WaitModelFacts& facts = learned->facts;
  if (asked.json)
    print_json(found_json(asked, facts));
  else
    print(fmt::format(
        "{} waits at {} taught a model: on the newest fifth, which it had not seen, its squared\n"
        "error of logarithms is {:.3f}, where medians of the like have {:.3f}. Waits that are {}\n"
        "days old count half, which did best here. The engine uses it\n"
        "from its next look at the queue on, where what the queue shows does not suffice\n"
        "(hpcbatch waits).\n",
        facts.waits, asked.site, facts.mean_square, facts.mean_square_medians,
        facts.half_life / foresight::kDay));
  return kExitDone;
}

Result<WaitModelFile> learn_site(const std::vector<PastJob>& jobs, Seconds since, Seconds now,
                                 const Teacher& teacher) {
  PastLesson lesson = past_lesson(jobs, since, now, kMostRows);
  const std::size_t rows = lesson.waits.size();
  if (rows < kFewestRows)
    return Error{Error::Kind::Rejected, "accounting shows " + std::to_string(rows) +
                                            " batch jobs of that time, and it takes " +
                                            std::to_string(kFewestRows) + " to learn from"};
  WaitModelFacts facts{.estimator = teacher.name,
                       .config_yaml = teacher.config_yaml,
                       .partitions = lesson.partitions,
                       .spread = {},
                       .waits = rows,
                       .from = lesson.waits.front().asked,
                       .until = lesson.waits.back().asked};
  const auto first = static_cast<std::size_t>(static_cast<double>(rows) * (1 - kJudged));
  const auto half_life = best_half_life(lesson, first, teacher);
  if (!half_life) return half_life.error();
  facts.half_life = *half_life;
  if (const auto good = judge(facts, lesson, first, teacher); !good) return good.error();
  auto model = teacher.train(known_by(lesson, now + 1, facts.half_life));
  if (!model) return model.error();
  return WaitModelFile{std::move(facts), std::move(*model)};
}

}  // namespace hpcbatch::estimate
