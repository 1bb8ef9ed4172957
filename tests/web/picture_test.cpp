#include "web/watcher.hpp"

#include <gtest/gtest.h>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include <map>
#include <random>
#include <string>

namespace hpcbatch::web {
namespace {

namespace json = boost::json;

json::array array_of(const char* text) {
  return json::parse(text).as_array();
}

std::string text_of(const json::object& object, const char* key) {
  const json::value* value = object.if_contains(key);
  return value ? json::serialize(*value) : "";
}

TEST(Picture, TellsWhatHasChangedSince) {
  Picture picture;
  picture.put("pilots", array_of(R"([{"name": "a", "tasks": 1}, {"name": "b", "tasks": 1}])"),
              "name");
  const auto all = picture.since(0);
  EXPECT_EQ(text_of(all, "sections"),
            R"({"pilots":{"a":{"name":"a","tasks":1},"b":{"name":"b","tasks":1}}})");
  const auto first = picture.version();
  picture.put("pilots", array_of(R"([{"name": "a", "tasks": 1}, {"name": "b", "tasks": 2}])"),
              "name");
  EXPECT_EQ(text_of(picture.since(first), "sections"),
            R"({"pilots":{"b":{"name":"b","tasks":2}}})");
  const auto second = picture.version();
  picture.put("pilots", array_of(R"([{"name": "b", "tasks": 2}])"), "name");
  EXPECT_EQ(text_of(picture.since(second), "sections"), R"({"pilots":{"a":null}})");
  EXPECT_EQ(text_of(picture.since(0), "sections"), R"({"pilots":{"b":{"name":"b","tasks":2}}})");
}

TEST(Picture, SaysNothingWhereNothingChanges) {
  Picture picture;
  picture.put("pilots", array_of(R"([{"name": "a"}])"), "name");
  picture.put("engine", {{"state", "running"}});
  const auto before = picture.version();
  picture.put("pilots", array_of(R"([{"name": "a"}])"), "name");
  picture.put("engine", {{"state", "running"}});
  EXPECT_EQ(picture.version(), before);
}

TEST(Picture, WhatComesBackIsToldAgain) {
  Picture picture;
  picture.put("sites", array_of(R"([{"name": "a"}])"), "name");
  picture.put("sites", {}, "name");
  const auto gone = picture.version();
  picture.put("sites", array_of(R"([{"name": "a"}])"), "name");
  EXPECT_EQ(text_of(picture.since(gone), "sections"), R"({"sites":{"a":{"name":"a"}}})");
}

TEST(Picture, KeepsCountsByTheSecondAndByTheMinute) {
  Picture picture;
  for (int second = 0; second < 4000; ++second)
    picture.add_counts(second, {{"waiting", second}, {"running", 2}});
  const auto all = picture.since(0);
  EXPECT_EQ(all.at("counts").as_array().size(), 3600U);
  EXPECT_EQ(all.at("minutes").as_array().size(), 67U);
  EXPECT_EQ(json::serialize(all.at("counts").as_array().back()), "[3.999E3,3999,0,2,0,0,0]");
  const auto version = picture.version();
  picture.add_counts(4000, {});
  EXPECT_EQ(picture.since(version).at("counts").as_array().size(), 1U);
  EXPECT_FALSE(picture.since(version).contains("minutes"));
}

json::object run(int number) {
  return {{"id", "1." + std::to_string(number)},
          {"attempt", 1},
          {"pilot", "p.0"},
          {"started_at", number},
          {"ended_at", number},
          {"state", "done"}};
}

TEST(Picture, KeepsTheNewestRunsEachOnce) {
  Picture picture;
  picture.add_runs({run(1), run(2), json::object{{"id", "1.3"}, {"state", "running"}}});
  const auto version = picture.version();
  picture.add_runs({run(1), run(2)});
  EXPECT_EQ(picture.version(), version);
  picture.add_runs({run(2), run(4)});
  EXPECT_EQ(picture.since(version).at("runs").as_array().size(), 1U);
  json::array many;
  for (int number = 10; number < 20'010; ++number) many.push_back(run(number));
  picture.add_runs(many);
  EXPECT_EQ(picture.since(0).at("runs").as_array().size(), 20'000U);
  picture.add_runs({run(1)});
  EXPECT_EQ(picture.since(0).at("runs").as_array().back().at(0), "1.1")
      << "one that was let go of is new again";
}

/// As `app.js` takes what it hears.
void take(const json::object& change, std::map<std::string, std::string>& known) {
  if (change.contains("minutes")) known.clear();
  const json::value* sections = change.if_contains("sections");
  const json::value* tasks = sections ? sections->as_object().if_contains("tasks") : nullptr;
  if (!tasks) return;
  for (const auto& [name, value] : tasks->as_object()) {
    if (value.is_null())
      known.erase(name);
    else
      known[name] = json::serialize(value);
  }
}

TEST(Picture, ChangesMakeWhatIsThereWheneverOneHears) {
  std::mt19937 draw(11);
  Picture picture;
  std::map<int, int> truth;
  struct Page {
    std::map<std::string, std::string> known;
    std::uint64_t version{0};
  } often, seldom;
  for (int round = 0; round < 2000; ++round) {
    std::map<int, bool> drawn;  // by id: whether it is there then
    for (int i = 0; i < 3; ++i) drawn[static_cast<int>(draw() % 40)] = draw() % 2 == 0;
    json::array entries, gone;
    for (const auto& [id, is_there] : drawn) {
      const std::string name = std::to_string(id);
      if (is_there) {
        truth[id] = round;
        entries.push_back({{"id", name}, {"since", round}});
      } else {
        truth.erase(id);
        gone.push_back(json::string(name));
      }
    }
    if (draw() % 50 == 0) {
      json::array all;
      for (const auto& [id, since] : truth)
        all.push_back({{"id", std::to_string(id)}, {"since", since}});
      picture.put("tasks", all, "id");
    } else {
      picture.change("tasks", entries, "id", gone);
    }
    std::map<std::string, std::string> expected;
    for (const auto& [id, since] : truth)
      expected[std::to_string(id)] =
          json::serialize(json::object{{"id", std::to_string(id)}, {"since", since}});
    for (Page* page : {&often, &seldom}) {
      if (page == &seldom && draw() % 200 != 0) continue;
      take(picture.since(page->version), page->known);
      page->version = picture.version();
      ASSERT_EQ(page->known, expected) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace hpcbatch::web
