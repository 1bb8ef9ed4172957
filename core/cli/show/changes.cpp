#include "cli/show/changes.hpp"

#include "cli/show/values.hpp"

namespace hpcbatch {
namespace {

namespace json = boost::json;

struct Words {
  const char* path;
  const char* done;
  const char* nothing;
};

Words words_of(ChangeCommand::Change change) {
  using Change = ChangeCommand::Change;
  switch (change) {
    case Change::Cancel:
      return {"cancel", "cancelled", "all of these tasks have ended already"};
    case Change::Hold:
      return {"hold", "held", "none of these tasks waits unheld"};
    case Change::Release:
      return {"release", "released", "none of these tasks is held"};
    case Change::Retry:
      return {"retry", "queued again", "none of these tasks has failed or was cancelled"};
    case Change::Requeue:
      return {"requeue", "told to end and run again", "none of these tasks runs"};
    case Change::Update:
      return {"update", "changed", "none of these tasks waits"};
    case Change::Signal:
      return {"signal", "signalled", "none of these tasks runs"};
  }
  return {};
}

std::string tasks_in_words(double tasks) {
  return whole(tasks) + (tasks == 1 ? " task" : " tasks");
}

/// One that a pilot has may end by itself before it hears of it.
std::string cancelled_in_words(double cancelled, double at_pilots) {
  const std::string told =
      at_pilots == 1 ? " at a pilot is told to end" : " at pilots are told to end";
  if (cancelled == 0) return tasks_in_words(at_pilots) + told;
  return tasks_in_words(cancelled) + " cancelled, and " + whole(at_pilots) + told;
}

/// Needs are those of a submission, not of its tasks.
std::string needs_in_words(const json::object& answer) {
  const double others = number_at(answer, "others"), later = number_at(answer, "later");
  std::string text;
  if (others > 0)
    text += "; " + tasks_in_words(others) + " of it that " +
            (others == 1 ? "waits asks" : "wait ask") + " for that now, too";
  if (later > 0)
    text += "; " + whole(later) + " of the same submission that " +
            (later == 1 ? "is not retried now would" : "are not retried now would") +
            " need it as well, once retried";
  return text;
}

std::string queued_in_words(const json::object& answer) {
  const double dependants = number_at(answer, "dependants");
  const double named = number_at(answer, "tasks") - dependants;
  std::string text = tasks_in_words(named) + " queued again";
  if (dependants > 0)
    text += ", and " + whole(dependants) + " that could not start without " +
            (named == 1 ? "it" : "them");
  return text + needs_in_words(answer);
}

std::string held_in_words(double held, double at_pilots) {
  return (held == 0 ? "none held yet" : tasks_in_words(held) + " held") + "; " + whole(at_pilots) +
         (at_pilots == 1 ? " is at a pilot: it goes on if it runs, and is held if it waits there"
                         : " are at pilots: those that run go on, those that wait there are held");
}

}  // namespace

const char* verb_of(ChangeCommand::Change change) {
  return words_of(change).path;
}

std::string change_in_words(ChangeCommand::Change change, const json::object& answer,
                            bool is_some) {
  using Change = ChangeCommand::Change;
  const double tasks = number_at(answer, "tasks"), at_pilots = number_at(answer, "at_pilots");
  if (at_pilots > 0)
    return change == Change::Hold ? held_in_words(tasks, at_pilots)
                                  : cancelled_in_words(tasks - at_pilots, at_pilots);
  if (tasks > 0 && change == Change::Retry) return queued_in_words(answer);
  const Words words = words_of(change);
  if (tasks > 0) return tasks_in_words(tasks) + " " + words.done;
  return std::string("nothing to do: ") +
         (is_some ? "none of these tasks has failed so" : words.nothing);
}

}  // namespace hpcbatch
