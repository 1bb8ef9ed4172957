#include "users.hpp"

#include "world.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hpcbatch::clockwork {

using namespace std::chrono_literals;

// --- what they do ------------------------------------------------------------------------------

void Users::strike(const Incident& incident) {
  if (!world_.engine.is_up()) {
    world_.clock.after(500ms, [this, incident] { strike(incident); });
    return;
  }
  if (incident.kind == IncidentKind::submit) {
    submit(incident);
  } else if (incident.kind == IncidentKind::keep) {
    keep(incident);
  } else {
    ask(incident);
  }
}

NewArray Users::draw_array(Draw& draw) const {
  NewArray array;
  const auto number = [&](std::uint64_t end) { return static_cast<std::int64_t>(draw.below(end)); };
  array.indices = draw.chance(25)
                      ? IndexSet(IndexRange{0, 0})
                      : IndexSet(IndexRange{1, static_cast<std::uint32_t>(2 + number(50))});
  array.needs.amounts.set(kCpus, draw.chance(80) ? Amount::of(1 + number(2))
                                                 : Amount{Amount::kTicks / 2 * (1 + number(8))});
  if (draw.chance(40)) array.needs.time = draw.between(20s, 5min);
  if (draw.chance(20)) array.needs.site = draw.chance(50) ? "here" : "there";
  if (draw.chance(12)) {
    array.needs.amounts.set(draw.chance(50) ? kAnyGpu : "gpus/a100", Amount::of(1 + number(2)));
  } else if (draw.chance(10)) {
    array.needs.tags = {"ssd"};
  }
  array.priority = static_cast<std::int32_t>(number(3));
  array.retries = static_cast<std::uint32_t>(number(3));
  array.max_running = draw.chance(20) ? static_cast<std::uint32_t>(1 + number(6)) : 0;
  array.held = draw.chance(8);
  array.streams_input = draw.chance(4);
  // From a branch of its own: older seeds draw what they drew.
  if (draw.of({'w'}).chance(15)) array.needs.service = kSharedService;
  if (Draw sites = draw.of({'x'}); array.needs.site.empty() && sites.chance(15))
    array.needs.not_on = {sites.chance(50) ? "here" : "there"};
  if (Draw files = draw.of({'f'}); files.chance(20)) {
    array.needs.staged_to = {"here", "there"};
    if (files.chance(50)) array.needs.staged_to = {files.chance(50) ? "here" : "there"};
    array.needs.own_files = files.chance(60);
  }
  if (Draw fails = draw.of({'m'}); fails.chance(12)) {
    array.give_up_at = static_cast<std::uint32_t>(1 + fails.below(4));
    array.gives_up_running = fails.chance(40);
  }
  const Needs& needs = array.needs;
  if (Draw wide = draw.of({'n'}); wide.chance(12) && needs.site != "here" && needs.tags.empty() &&
                                  needs.amounts.gpus() == Amount{} && needs.service.empty())
    array.needs.nodes = 2;
  if (has_local(world_.scenario())) choose_local(array, draw.of({'l'}));
  return array;
}

/// Most let the engine choose between this machine and the clusters.
void Users::choose_local(NewArray& array, Draw draw) const {
  Needs& needs = array.needs;
  if (!needs.site.empty()) return;
  if (needs.tags.empty() && needs.amounts.gpus() == Amount{} && draw.chance(15)) {
    needs.site = kLocalSite;
  } else if (draw.chance(15)) {
    needs.not_on.emplace_back(kLocalSite);
    std::sort(needs.not_on.begin(), needs.not_on.end());
  }
}

/// Most say nothing of it.
void Users::draw_course(NewArray& array, Draw draw) const {
  bool has_pairs = false;
  for (Dependency& on : array.after) {
    has_pairs = has_pairs || on.kind == Dependency::Kind::EachSuccess;
    if (on.kind == Dependency::Kind::EachSuccess || !draw.chance(25)) continue;
    on.kind = draw.chance(50) ? Dependency::Kind::Start : Dependency::Kind::NotSuccess;
    if (on.kind == Dependency::Kind::Start && draw.chance(50)) on.delay = draw.between(1s, 40s);
  }
  if (draw.chance(8)) array.course.edit().begin = world_.clock.now() + draw.between(1s, 2min);
  if (draw.chance(5)) array.course.edit().deadline = world_.clock.now() + draw.between(1min, 10min);
  if (draw.chance(6)) array.course.edit().no_requeue = true;
  if (draw.chance(5)) array.course.edit().singleton = draw.chance(50) ? "fit" : "sort";
  if (!array.after.empty() && !has_pairs && array.course->singleton.empty() && draw.chance(20))
    array.course.edit().any_of_after = true;
}

void Users::submit(const Incident& incident) {
  Draw draw(incident.which);
  NewArray array = draw_array(draw);
  for (int i = 0; i < 2 && !known_.empty() && draw.chance(25); ++i) {
    Dependency on{known_[draw.below(known_.size())], {}, Dependency::Kind(draw.below(3))};
    const IndexSet& there = arrays_.at(on.array).facts.indices;
    if (on.kind == Dependency::Kind::EachSuccess) {
      if (!array.after.empty()) continue;
      array.indices = there;
      // Often with gaps: not every one of them has a successor.
      const auto first = static_cast<std::uint32_t>(2 + draw.below(4));
      if (draw.chance(50)) array.indices.remove(IndexRange{first, first + 3});
      if (array.indices.empty()) array.indices = there;
    } else if (draw.chance(30)) {
      on.index = there.ranges().back().first;
    }
    array.after.push_back(on);
  }
  draw_course(array, draw.of({'c'}));
  TasksSubmitted event{.client = draw.chance(50) ? "ann" : "bob", .content = incident.which};
  if (draw.of({'u'}).chance(10)) event.client = "cyd";
  if (std::exchange(killer_next_, false)) {
    with_killer_.insert(incident.which);
    world_.count("fault killer_task");
  }
  if (draw.chance(70)) event.key = fmt::format("key-{:x}", incident.which);
  event.arrays.push_back(std::move(array));
  world_.count("user submit");
  send(new_request(), std::move(event));
}

void Users::send(RequestId request, TasksSubmitted event) {
  event.request = request;
  waiting_[request.value] = event;
  world_.engine.submit(std::move(event));
}

void Users::ask(const Incident& incident) {
  if (known_.empty()) return;
  Draw draw(incident.which);
  const ArrayId array = known_[draw.below(known_.size())];
  Selection some{array, std::nullopt};
  if (draw.chance(60)) {
    const auto first = static_cast<std::uint32_t>(draw.below(12));
    some.indices = IndexSet(IndexRange{first, first + 5});
  }
  const RequestId request = new_request();
  const Engine& engine = *world_.engine.engine();
  world_.count("user " + std::string(name_of(incident.kind)));
  switch (incident.kind) {
    case IncidentKind::cancel:
      world_.observer.cancel_asked(request, some, engine);
      return world_.engine.ask(CancelAsked{request, {some}});
    case IncidentKind::hold:
      if (draw.of({'r'}).chance(20)) {
        world_.observer.retry_asked(array);
        return world_.engine.ask(RequeueAsked{request, {some}});
      }
      world_.observer.hold_asked(request, some, engine);
      return world_.engine.ask(HoldAsked{request, {some}, true});
    case IncidentKind::release:
      if (draw.of({'u'}).chance(20)) {
        TermsChange change;
        change.priority = static_cast<std::int32_t>(draw.below(3));
        if (draw.chance(30)) change.begin = world_.clock.now() + draw.between(1s, 30s);
        return world_.engine.ask(UpdateAsked{request, {array}, change, {}});
      }
      world_.observer.release_asked(some);
      return world_.engine.ask(HoldAsked{request, {some}, false});
    case IncidentKind::retry:
      world_.observer.retry_asked(array);
      return world_.engine.retry(request, array);
    default:
      return world_.fail("no user does that");
  }
}

void Users::keep(const Incident& incident) {
  if (!world_.engine.is_up() || world_.engine.engine()->is_draining()) return;
  Draw draw(incident.which);
  const auto& sites = world_.engine.engine()->sites().sites();
  const SiteState& site = sites[draw.below(sites.size())];
  if (site.shapes.empty()) return;
  world_.count("user keep");
  world_.engine.ask(KeepAsked{
      new_request(), site.site.name, site.shapes[draw.below(site.shapes.size())].shape.name,
      static_cast<std::uint32_t>(draw.below(3)), world_.clock.now() + incident.length * 2});
}

void Users::keep_nothing() {
  if (!world_.engine.is_up()) return;
  std::vector<Keep> kept;
  for (const SiteState& site : world_.engine.engine()->sites().sites()) {
    for (const ShapeState& shape : site.shapes)
      if (shape.keep) kept.push_back(*shape.keep);
  }
  for (const Keep& keep : kept) {
    if (!world_.engine.is_up()) return;
    world_.engine.ask(KeepAsked{new_request(), keep.site, keep.shape, 0, {}});
  }
}

void Users::release_all() {
  const std::uint64_t last = world_.engine.saved().last_array().value;
  for (std::uint64_t id = 1; id <= last; ++id) {
    if (!world_.engine.is_up()) return;
    const ArrayState* array = world_.engine.engine()->tasks().find(ArrayId{id});
    if (!array || array->tasks.held().empty()) continue;
    const Selection all{ArrayId{id}, std::nullopt};
    world_.observer.release_asked(all);
    world_.engine.ask(HoldAsked{new_request(), {all}, false});
  }
}

// --- what they are told ------------------------------------------------------------------------

void Users::accepted(RequestId request, const std::vector<ArrayId>& ids) {
  const auto at = waiting_.find(request.value);
  if (at == waiting_.end()) return world_.fail("a submit is answered twice");
  const TasksSubmitted event = std::move(at->second);
  waiting_.erase(at);
  for (const ArrayId id : ids) {
    world_.record(
        "outside", "answered",
        {{"array", std::to_string(id.value)}, {"indices", to_string(event.arrays[0].indices)}});
  }
  if (!event.key.empty()) {
    const auto [there, is_new] = by_key_.try_emplace(event.key, ids);
    if (!is_new && there->second != ids)
      return world_.fail(fmt::format("{} was answered with two different ids", event.key));
    if (!is_new) return;
  }
  known_.insert(known_.end(), ids.begin(), ids.end());
}

void Users::refused(RequestId request, const std::string& text) {
  if (text.empty()) world_.fail("a submit is refused without a word");
  waiting_.erase(request.value);
}

void Users::counted(RequestId request) {
  world_.observer.answered(request);
}

void Users::told(ArrayId array) {
  if (!arrays_.contains(array)) world_.fail("an array ends that nobody submitted");
}

void Users::engine_died() {
  world_.observer.nobody_answers();
  // Who has a key asks again with it; the others give up.
  for (auto& [request, event] : std::exchange(waiting_, {})) {
    if (!event.key.empty()) to_repeat_.push_back(std::move(event));
  }
}

void Users::engine_started() {
  for (TasksSubmitted& event : std::exchange(to_repeat_, {})) {
    event.ended.clear();
    world_.clock.after(100ms, [this, event] {
      if (world_.engine.is_up()) {
        send(new_request(), event);
      } else {
        to_repeat_.push_back(event);
      }
    });
  }
}

// --- what they submitted -----------------------------------------------------------------------

void Users::saved(const SaveArrays& save) {
  for (std::size_t i = 0; i < save.arrays.size(); ++i)
    arrays_[save.id_of(i)] = {save.arrays[i], save.content};
}

const NewArray* Users::facts_of(ArrayId array) const {
  const auto at = arrays_.find(array);
  return at == arrays_.end() ? nullptr : &at->second.facts;
}

Resources Users::needs_of(TaskId task) const {
  const NewArray* array = facts_of(task.array);
  return array ? array->needs.amounts : Resources{};
}

Behaviour Users::behaviour(TaskId task, std::uint32_t attempt) const {
  const Array& array = arrays_.at(task.array);
  Draw kind = Draw(array.content).of({'k'});
  Draw draw = Draw(array.content).of({'t', task.index, attempt});
  Behaviour does;
  const std::uint64_t speed = kind.below(10);
  does.takes = speed < 5   ? draw.between(5ms, 3s)
               : speed < 9 ? draw.between(1s, 30s)
                           : draw.between(20s, 4min);
  does.has_outputs = kind.chance(35);
  // The first or a later one of those of the array.
  does.kills_its_pilot =
      with_killer_.contains(array.content) &&
      (array.facts.indices.size() == 1 || task.index == 1 + kind.of({'q'}).below(3));
  if (kind.chance(25) && draw.chance(30))
    does.failure = draw.chance(80) ? Failure::ToolFailed : Failure::ToolSignal;
  return does;
}

}  // namespace hpcbatch::clockwork
