#include "api/api.hpp"

#include "api/answers/to_json.hpp"
#include "api/make/make_submission.hpp"
#include "api/make/submitted_files.hpp"
#include "api/read/json_values.hpp"
#include "api/read/read_request.hpp"
#include "loop/asio.hpp"
#include "model/item.hpp"
#include "wire/wire.pb.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hpcbatch {
namespace {

int status_of(const SubmitRefusal& refusal) {
  return refusal.conflict ? 409 : refusal.not_now ? 503 : 400;
}

boost::json::array texts_of(const std::vector<ArrayId>& ids) {
  boost::json::array texts;
  for (const ArrayId id : ids) texts.push_back(boost::json::string(std::to_string(id.value)));
  return texts;
}

boost::json::object answer_of(const std::variant<std::vector<ArrayId>, SubmitRefusal>& answer,
                              const std::vector<std::string>& advice) {
  if (const auto* refusal = std::get_if<SubmitRefusal>(&answer))
    return {{"error", refusal->text}, {"status", status_of(*refusal)}};
  boost::json::object object{{"ids", texts_of(std::get<0>(answer))}};
  if (!advice.empty()) object["advice"] = boost::json::array(advice.begin(), advice.end());
  return object;
}

bool wants_estimates(const SubmitRequest& request, const std::vector<const Site*>& sites) {
  const auto is_on = [](const std::optional<EstimateMode>& mode) {
    return mode.value_or(EstimateMode::Off) != EstimateMode::Off;
  };
  return std::any_of(sites.begin(), sites.end(),
                     [&](const Site* site) { return is_on(site->estimate); }) ||
         std::any_of(request.tasks.begin(), request.tasks.end(),
                     [&](const TaskRequest& task) { return is_on(task.estimate); });
}

/// Nothing where no task of ours has that name at that pilot: it may be another engine's.
std::optional<TaskId> outer_task(const Engine& engine, const std::optional<Within>& within) {
  if (!within) return std::nullopt;
  const Lease* lease = engine.pilots().lease(within->task);
  return lease && lease->pilot == within->pilot ? std::optional(within->task) : std::nullopt;
}

}  // namespace

void SubmitRoutes::add_to(Routes& routes) {
  routes.add("POST", "tasks", [this](HttpRequest& request, const ReplyPtr& reply) {
    post(std::move(request.body), reply);
  });
  routes.add("POST", "tasks/try", [this](HttpRequest& request, const ReplyPtr& reply) {
    try_out(std::move(request.body), reply);
  });
  routes.add("POST", "submits",
             [this](HttpRequest& request, const ReplyPtr& reply) { post_several(request, reply); });
  routes.add("GET", "keys",
             [this](HttpRequest& request, const ReplyPtr& reply) { ids_of_key(request, reply); });
}

void SubmitRoutes::post(std::string body, const ReplyPtr& reply) {
  SubmitWithContent read = read_submit_body(std::move(body));
  submit(std::move(read.request), read.content,
         [reply](const std::variant<std::vector<ArrayId>, SubmitRefusal>& answer,
                 const std::vector<std::string>& advice) {
           if (const auto* refusal = std::get_if<SubmitRefusal>(&answer)) {
             reply->error(status_of(*refusal), refusal->text);
           } else {
             reply->answer(200, answer_of(answer, advice));
           }
         });
}

void SubmitRoutes::post_several(const HttpRequest& request, const ReplyPtr& reply) {
  const boost::json::value body = parse_body_of_submits(request.body);
  const boost::json::value* list = body.get_object().if_contains("submits");
  if (!list || !list->is_array() || list->get_array().empty() || body.get_object().size() != 1)
    throw BadRequest("the one key is 'submits': a list of at least one submit");
  struct Gathered {
    boost::json::array answers;
    std::size_t missing{0};
  };
  auto gathered = std::make_shared<Gathered>();
  gathered->missing = list->get_array().size();
  gathered->answers.resize(gathered->missing);
  std::size_t place = 0;
  for (const boost::json::value& one : list->get_array()) {
    const auto answer = [reply, gathered, place](
                            const std::variant<std::vector<ArrayId>, SubmitRefusal>& said,
                            const std::vector<std::string>& advice) {
      gathered->answers[place] = answer_of(said, advice);
      if (--gathered->missing == 0) reply->answer(200, {{"answers", std::move(gathered->answers)}});
    };
    ++place;
    try {
      if (!one.is_object()) throw BadRequest("a submit must be an object");
      submit(read_submit(one), content_of(one), answer);
    } catch (const std::exception& e) {
      // What came before it is taken, and told.
      answer(SubmitRefusal{e.what()}, {});
    }
  }
}

void SubmitRoutes::ids_of_key(const HttpRequest& request, const ReplyPtr& reply) {
  const auto client = request.query.find("client");
  const auto key = request.query.find("key");
  if (client == request.query.end() || key == request.query.end())
    throw BadRequest("/v1/keys takes GET with 'client' and 'key'");
  runtime_.look([client = client->second, key = key->second](
                    store::Store& store) { return store.history().ids_of_key(client, key); },
                [reply](const std::vector<ArrayId>& ids) {
                  if (ids.empty()) return reply->error(404, "no submit with this key is known");
                  reply->answer(200, {{"ids", texts_of(ids)}});
                });
}

void SubmitRoutes::submit(SubmitRequest request, std::uint64_t content, Answer answer) {
  auto take = [this, answer](Submission submission) {
    auto told = [answer, advice = std::move(submission.advice)](
                    const std::variant<std::vector<ArrayId>, SubmitRefusal>& said) {
      answer(said, advice);
    };
    runtime_.requests().submit(std::move(submission), std::move(told));
  };
  prepare(std::move(request), content, std::move(take),
          [answer = std::move(answer)](SubmitRefusal refusal) { answer(std::move(refusal), {}); });
}

void SubmitRoutes::prepare(SubmitRequest request, std::uint64_t content, Prepared prepared,
                           Refuse refuse) {
  if (!wants_estimates(request, sites_of(runtime_.engine())))
    return make(std::move(request), content, std::move(prepared), std::move(refuse));
  auto waiting = std::make_shared<SubmitRequest>(std::move(request));
  runtime_.learning().want_estimates([this, waiting, content, prepared = std::move(prepared),
                                      refuse = std::move(refuse)]() mutable {
    make(std::move(*waiting), content, std::move(prepared), std::move(refuse));
  });
}

/// A request on its way to what the engine takes.
struct SubmitRoutes::Made {
  SubmitRequest request;
  std::uint64_t content{0};
  Prepared prepared;
  Refuse refuse;
  SeenFiles seen{};
};

void SubmitRoutes::make(SubmitRequest request, std::uint64_t content, Prepared prepared,
                        Refuse refuse) {
  NamedFiles named = named_now(request);
  auto made = std::make_shared<Made>(
      Made{std::move(request), content, std::move(prepared), std::move(refuse)});
  if (named.inputs.empty() && named.destinations.empty()) return render(made);
  files_.run([this, &loop = runtime_.loop(), named = std::move(named), made] {
    made->seen = look_at(named);
    asio::post(loop, [this, made] { render(made); });
  });
}

void SubmitRoutes::render(const std::shared_ptr<Made>& made) {
  if (!made->seen.refusal.empty()) return made->refuse(SubmitRefusal{made->seen.refusal});
  std::vector<RenderingAsked> asked;
  std::size_t place = 0;
  for (const TaskRequest& task : made->request.tasks) {
    if (auto one = rendering_elsewhere(tools_, task, place, made->seen.files))
      asked.push_back(std::move(*one));
    ++place;
  }
  calls_.render(std::move(asked),
                [this, made](const Renderings& rendered) { put_together(*made, rendered); });
}

void SubmitRoutes::put_together(Made& made, const Renderings& rendered) {
  SubmitRequest& request = made.request;
  SubmissionMaker maker(tools_, sites_of(runtime_.engine()), request, umask_,
                        runtime_.learning().estimates());
  maker.expect(request.tasks.size());
  try {
    for (std::size_t place = 0; !request.tasks.empty(); request.tasks.pop_front(), ++place) {
      const auto at = rendered.find(place);
      maker.add(std::move(request.tasks.front()), made.seen.files,
                at == rendered.end() ? nullptr : &at->second);
    }
  } catch (const BadRequest& e) {
    return made.refuse(SubmitRefusal{e.what()});
  }
  Submission submission = maker.take();
  submission.content = made.content;
  // What programs submit, thousands of times, is theirs to tell of.
  if (submission.notify.empty() && request.client.starts_with("shell:") && !request.within)
    submission.notify = notify_;
  std::erase(submission.notify, "none");
  if (const auto within = outer_task(runtime_.engine(), request.within)) {
    for (NewArray& array : submission.arrays) array.within = within;
  }
  made.prepared(std::move(submission));
}

// What a submit would do, without doing it.

namespace {

namespace json = boost::json;

json::object trial_of(const Engine& engine, const NewArray& array, const store::Recipe& stored) {
  json::object trial{{"tasks", array.indices.size()}, {"needs", to_json(array.needs)}};
  if (!stored.words->name.empty()) trial["name"] = stored.words->name;
  if (!stored.words->tool.empty()) trial["tool"] = stored.words->tool;
  std::optional<Item> first;
  const std::uint32_t index = IndexSet(array.indices).pop_first();
  if (!stored.words->items.empty())
    first = item_of(stored.bytes, stored.words->items.at(index - 1));
  const wire::Start start = start_from_bytes(stored.bytes);
  json::array command;
  for (const std::string& argument : start.argv())
    command.push_back(json::string(first ? with_item(argument, *first, index) : argument));
  trial["command"] = std::move(command);
  if (first) trial["item"] = first->text();
  json::array fits;
  for (const std::string& shape : engine.shapes_for(array.needs))
    fits.push_back(json::string(shape));
  trial["fits"] = std::move(fits);
  if (const auto misfit = engine.misfit_of(array)) trial["refusal"] = *misfit;
  return trial;
}

}  // namespace

void SubmitRoutes::try_out(std::string body, const ReplyPtr& reply) {
  SubmitWithContent read = read_submit_body(std::move(body));
  prepare(
      std::move(read.request), read.content,
      [this, reply](const Submission& submission) {
        json::array trials;
        for (std::size_t i = 0; i < submission.arrays.size(); ++i)
          trials.push_back(
              trial_of(runtime_.engine(), submission.arrays[i], submission.recipes[i]));
        reply->answer(200, {{"tasks", std::move(trials)}});
      },
      [reply](const SubmitRefusal& refusal) { reply->error(400, refusal.text); });
}

}  // namespace hpcbatch
