// What a submit would do, without doing it.
#include "api/answers/to_json.hpp"
#include "api/submit_routes.hpp"
#include "model/placeholders.hpp"
#include "wire/wire.pb.h"

#include <utility>

namespace hpcbatch {
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
