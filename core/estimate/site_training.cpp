#include "estimate/site_training.hpp"

#include "estimate/training.hpp"
#include "foresight/learned/conformal.hpp"
#include "foresight/learned/model_check.hpp"
#include "foresight/learned/past_lesson.hpp"
#include "foresight/learned/wait_errors.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>

namespace hpcbatch::estimate {
namespace {

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
  return errors_of(of_started, waited).mean_square;
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
  facts.mean_square = errors_of(by_model, waited).mean_square;
  facts.mean_square_medians = errors_of(by_medians, waited).mean_square;
  facts.spread = spread_of(*told, lesson, first);
  return {};
}

}  // namespace

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
