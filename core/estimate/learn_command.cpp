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

#include <fcntl.h>
#include <sys/stat.h>

namespace hpcbatch::estimate {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using foresight::Seconds;

/// An answer is bounded: of a longer time a busy site would tell but the beginning.
constexpr Seconds kPart = 6 * foresight::kHour;
constexpr auto kAnswerWithin = 120s;

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

/// All that were submitted in those days, once each.
std::vector<PastJob> collect(const Places& places, const Asked& asked, Seconds now,
                             const LearnProgress& progress) {
  const Interrupt interrupt;
  EngineClient client(places, interrupt.descriptor());
  std::vector<PastJob> all;
  const Seconds first = now - asked.days * foresight::kDay;
  const auto parts = static_cast<std::size_t>((now - first + kPart - 1) / kPart);
  for (std::size_t part = 0; part < parts; ++part) {
    progress("reading accounting", part, parts);
    const Seconds from = first + static_cast<Seconds>(part) * kPart;
    const Seconds until = std::min(from + kPart, now);
    const json::object answer =
        client.get(fmt::format("/v1/sites/{}/past-jobs?from={}&until={}", asked.site, from, until),
                   kAnswerWithin);
    for (PastJob& job : foresight::past_jobs(answer.at("jobs").as_string())) {
      // Those that ran on from an earlier part are told again.
      const Seconds submitted = job.submitted.count();
      if (submitted >= from && submitted < until) all.push_back(std::move(job));
    }
  }
  progress("reading accounting", parts, parts);
  return all;
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
  const std::vector<PastJob> jobs = collect(*places, asked, now, progress);
  progress("learning", 0, 1);
  const auto learned = learn_site(jobs, now, *teacher);
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
        "error of logarithms is {:.3f}, where medians of the like have {:.3f}. The engine uses it\n"
        "from its next look at the queue on, where what the queue shows does not suffice\n"
        "(hpcbatch waits).\n",
        facts.waits, asked.site, facts.mean_square, facts.mean_square_medians));
  return kExitDone;
}

}  // namespace hpcbatch::estimate
