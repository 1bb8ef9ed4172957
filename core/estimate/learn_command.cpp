#include "estimate/learn_command.hpp"

#include "cli/client/engine_client.hpp"
#include "cli/process/exit.hpp"
#include "cli/process/interrupt.hpp"
#include "cli/process/surroundings.hpp"
#include "cli/show/values.hpp"
#include "documents/state_paths.hpp"
#include "estimate/site_training.hpp"
#include "estimate/training.hpp"
#include "foresight/learned/past_text.hpp"
#include "posix/replace_file.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <numeric>

#include <fcntl.h>
#include <sys/stat.h>

namespace hpcbatch::estimate {
namespace {

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

}  // namespace

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

}  // namespace hpcbatch::estimate
