#include "cli/top/canvas.hpp"
#include "cli/top/keys.hpp"
#include "cli/top/panes.hpp"
#include "cli/top/picture.hpp"
#include "cli/top/state.hpp"
#include "documents/texts.hpp"

#include <boost/json/parse.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace hpcbatch::top {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Kind = Key::Kind;

boost::json::object object_in(const std::string& text) {
  return boost::json::parse(text).as_object();
}

std::string text_of(const Canvas& page) {
  std::string text;
  for (std::size_t row = 0; row < page.rows(); ++row) text += page.text_of(row) + "\n";
  return text;
}

/// What a terminal shows that got these bytes: cursor moves, clears, text.
Canvas played(const std::string& bytes, std::size_t rows, std::size_t columns, Canvas page) {
  std::size_t row = 0, column = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    if (bytes[at] != '\x1b') {
      const Letter letter = first_letter(std::string_view(bytes).substr(at));
      page.put(row, column, bytes.substr(at, letter.bytes));
      column += letter.columns;
      at += letter.bytes;
      continue;
    }
    const std::size_t end = bytes.find_first_of("HmJ", at);
    const std::string words = bytes.substr(at + 2, end - at - 2);
    if (bytes[end] == 'J') page = Canvas(rows, columns);
    if (bytes[end] == 'H') {
      row = std::stoul(words) - 1;
      column = std::stoul(words.substr(words.find(';') + 1)) - 1;
    }
    at = end + 1;
  }
  return page;
}

State state_of(std::size_t rows, std::size_t columns) {
  State state;
  state.rows = rows;
  state.columns = columns;
  state.now = 1000;
  return state;
}

void answer(State& state, About about, const std::string& text) {
  for (const Question& question : questions_of(state)) {
    if (question.about == about) return on_reply(state, {question, object_in(text)});
  }
  FAIL() << "it does not ask for that";
}

void type(State& state, const std::string& letters) {
  for (const char letter : letters) on_key(state, {.text = std::string(1, letter)});
}

void press(State& state, Kind kind) {
  on_key(state, {.kind = kind});
}

State with_submissions(std::size_t rows = 24, std::size_t columns = 80) {
  State state = state_of(rows, columns);
  answer(state, About::Engine,
         R"({"state": "running", "uptime_s": 60, "tasks": {"running": 200, "waiting": 1000000},
             "pilots": {"running": 5, "queued": 2}})");
  answer(state, About::List,
         R"({"arrays": [
           {"id": "14", "state": "failed", "total": 1, "name": "last", "counts": {"failed": 1}},
           {"id": "12-13", "state": "running", "total": 20, "name": "both", "counts": {"running": 3}},
           {"id": "9", "state": "done", "total": 4, "name": "old", "counts": {"done": 4}}],
           "next": "9"})");
  return state;
}

TEST(Canvas, NothingThatATextHoldsIsObeyed) {
  Canvas page(2, 30);
  page.put(0, 0, "a\x1b[2Jb\nc\r\xc2\x9b\xff");
  EXPECT_EQ(page.text_of(0), "a\\x1b[2Jb\\nc\\x0d\\u009b\\xff");
}

TEST(Canvas, WideLettersTakeTwoCellsAndAreNeverHalved) {
  Canvas page(1, 5);
  EXPECT_EQ(page.put(0, 0, "漢字かな"), 4U);
  EXPECT_EQ(page.text_of(0), "漢字");
  page.put(0, 1, "x");
  EXPECT_EQ(page.text_of(0), " x字");
  Canvas marks(1, 4);
  marks.put(0, 0, "e\u0301a");
  EXPECT_EQ(marks.text_of(0), "e\u0301a");
}

TEST(Canvas, OnlyWhatHasChangedIsWritten) {
  Canvas before(3, 20), after(3, 20);
  before.put(0, 0, "running 10 tasks");
  after.put(0, 0, "running 11 tasks");
  EXPECT_EQ(changes(before, after, {}), "\x1b[1;10H\x1b[0m1\x1b[0m");
  EXPECT_EQ(changes(after, after, {}), "");
  after.put(1, 3, "漢x字");
  after.put(2, 0, "red", {Colour::Red});
  EXPECT_EQ(text_of(played(changes(before, after, {}), 3, 20, before)), text_of(after));
  EXPECT_EQ(text_of(played(changes(Canvas(0, 0), after, {}), 3, 20, before)), text_of(after));
}

TEST(Canvas, ATerminalGetsWhatItCanShow) {
  Canvas page(1, 6);
  page.put(0, 0, "é漢", {Colour::Red, true});
  const std::string plain = changes(Canvas(1, 6), page, {.has_colours = false, .is_utf8 = false});
  EXPECT_THAT(plain, HasSubstr("m?? \x1b[0m"));
  EXPECT_THAT(plain, Not(HasSubstr("31")));
}

TEST(Keys, OfAKeyboardAndAMouseAlsoInPieces) {
  KeyReader keys;
  EXPECT_THAT(
      keys.read("q\t\x1b[A\x1bOB\x1b[5~\r\x7f\x03"),
      ElementsAre(Key{.text = "q"}, Key{.kind = Kind::Tab}, Key{.kind = Kind::Up},
                  Key{.kind = Kind::Down}, Key{.kind = Kind::PageUp}, Key{.kind = Kind::Enter},
                  Key{.kind = Kind::Backspace}, Key{.kind = Kind::Interrupt}));
  EXPECT_THAT(keys.read("\x1b["), ElementsAre());
  EXPECT_THAT(keys.read("Z\xe6\xbc"), ElementsAre(Key{.kind = Kind::BackTab}));
  EXPECT_THAT(keys.read("\xa2"), ElementsAre(Key{.text = "漢"}));
  EXPECT_THAT(
      keys.read("\x1b[<0;5;3M\x1b[<0;5;3m\x1b[<64;1;1M\x1b[<0;;3M\x1b[99;1u"),
      ElementsAre(Key{.kind = Kind::Click, .row = 2, .column = 4}, Key{.kind = Kind::WheelUp}));
  EXPECT_THAT(keys.read("\x1b/"), ElementsAre(Key{.kind = Kind::Escape}, Key{.text = "/"}));
  EXPECT_THAT(keys.read("\x1b"), ElementsAre());
  EXPECT_TRUE(keys.is_amid());
  EXPECT_THAT(keys.pause(), ElementsAre(Key{.kind = Kind::Escape}));
}

TEST(Top, FitsEverySize) {
  for (const auto& [rows, columns] :
       {std::pair{40, 120}, {24, 80}, {12, 40}, {5, 20}, {1, 1}, {0, 0}}) {
    State state =
        with_submissions(static_cast<std::size_t>(rows), static_cast<std::size_t>(columns));
    for (const char* keys : {"", "j", "?", "?", "c", "n", "/x", "\x7f"}) {
      type(state, keys);
      const Canvas page = picture(state, {});
      EXPECT_EQ(page.rows(), static_cast<std::size_t>(rows));
    }
    press(state, Kind::Enter);
    picture(state, {});
  }
  State state = with_submissions(12, 40);
  EXPECT_EQ(picture(state, {}).text_of(1), "200 running  1,000,000 waiting  0 failed");
  EXPECT_THAT(text_of(picture(state, {})), HasSubstr("old"));
}

TEST(Top, SelectionStaysWithItsRow) {
  State state = with_submissions();
  type(state, "jj");
  EXPECT_EQ(state.list().selected, "9");
  answer(state, About::List, R"({"arrays": [{"id": "20"}, {"id": "14"}, {"id": "9"}]})");
  EXPECT_EQ(state.list().selected, "9");
  EXPECT_EQ(state.list().row, 2U);
  answer(state, About::List, R"({"arrays": [{"id": "20"}]})");
  EXPECT_EQ(state.list().selected, "20");
}

TEST(Top, AsksForAPageAtATime) {
  State state = with_submissions();
  EXPECT_THAT(questions_of(state),
              ElementsAre(Question{About::Engine, "/v1/engine"},
                          Question{About::List, "/v1/arrays?limit=100&per=submit"}));
  type(state, "n");
  EXPECT_EQ(questions_of(state)[1].target, "/v1/arrays?limit=100&per=submit&before=9");
  type(state, "p");
  EXPECT_EQ(questions_of(state)[1].target, "/v1/arrays?limit=100&per=submit");
  // An engine that takes long is asked seldom.
  EXPECT_EQ(pause_of(state, 0.01), 1);
  EXPECT_EQ(pause_of(state, 0.5), 4.5);
  EXPECT_EQ(pause_of(state, 60), 15);
}

TEST(Top, FilterAsksTheEngineForWhatItKnows) {
  State state = with_submissions();
  type(state, "2/failed 12 exit:3 x");
  press(state, Kind::Enter);
  EXPECT_EQ(questions_of(state)[1].target,
            "/v1/tasks?limit=100&state=failed&array=12&failure=exit%3A3");
  answer(state, About::List,
         R"({"tasks": [{"id": "12.3", "name": "xylem"}, {"id": "12.2", "name": "a"}]})");
  EXPECT_EQ(state.list().selected, "12.3");
  EXPECT_EQ(rows_of(state.pane, state.list()).size(), 1U);
  press(state, Kind::Escape);
  EXPECT_EQ(questions_of(state)[1].target, "/v1/tasks?limit=100");
}

TEST(Top, LooksIntoSubmissionsTasksAndLinesOfMany) {
  State state = with_submissions();
  press(state, Kind::Enter);
  EXPECT_EQ(questions_of(state)[1].target, "/v1/tasks/14");
  press(state, Kind::Escape);
  type(state, "j");
  press(state, Kind::Enter);
  EXPECT_EQ(questions_of(state)[1].target, "/v1/arrays?limit=100&before=14");
  answer(state, About::List,
         R"({"arrays": [{"id": "13", "total": 9}, {"id": "12"}, {"id": "9"}], "next": "9"})");
  EXPECT_EQ(state.list().rows.size(), 2U);
  type(state, "t");
  EXPECT_EQ(questions_of(state)[1].target, "/v1/tasks?limit=100&array=13");
  answer(state, About::List, R"({"tasks": [{"id": "13.4-9", "state": "waiting", "tasks": 6}]})");
  press(state, Kind::Enter);
  EXPECT_EQ(questions_of(state)[1].target, "/v1/tasks?limit=100&array=13&apart=1&before=13.10");
}

TEST(Top, OutputComesPieceByPiece) {
  State state = with_submissions();
  type(state, "o");
  EXPECT_EQ(questions_of(state).size(), 2U);
  answer(state, About::Shown, R"({"id": "14", "state": "running", "attempt": 1})");
  EXPECT_EQ(questions_of(state)[2].target, "/v1/tasks/14/log?stream=stdout&offset=0&limit=524288");
  const auto first = questions_of(state);
  answer(state, About::Output,
         R"({"text": "one\n\u001b[31mred\u001b[0m 10%\r20%\n", "offset": 0, "next": 30})");
  EXPECT_TRUE(are_alike(first, questions_of(state)));
  answer(state, About::Output, R"({"text": "three\n", "offset": 30, "next": 36, "end": true})");
  EXPECT_THAT(lines_of_look(state), ElementsAre("one", "20%", "three"));
  EXPECT_EQ(questions_of(state).size(), 2U);
  // Another attempt prints from its beginning.
  answer(state, About::Shown, R"({"id": "14", "state": "running", "attempt": 2})");
  EXPECT_THAT(lines_of_look(state), ElementsAre("nothing was printed yet"));
}

TEST(Top, ChangesOnlyAfterAYes) {
  State state = with_submissions();
  type(state, "jc");
  EXPECT_THAT(text_of(picture(state, {})), HasSubstr("cancel 12-13 (both), 20 tasks? y/n"));
  type(state, "n");
  EXPECT_FALSE(state.order);
  type(state, "cy");
  ASSERT_TRUE(state.order);
  EXPECT_EQ(state.order->body, object_in(R"({"ids": ["12", "13"]})"));
  on_done(state, *state.order, object_in(R"({"tasks": 17})"));
  EXPECT_THAT(text_of(picture(state, {})), HasSubstr("17 tasks cancelled"));
  on_refused(state, "not now");
  EXPECT_THAT(text_of(picture(state, {})), HasSubstr("not now"));
}

TEST(Top, ALookCutsNothing) {
  State state = with_submissions(24, 40);
  press(state, Kind::Enter);
  const std::string command = "sh -c '" + std::string(100, 'x') + " end'";
  answer(state, About::Shown,
         R"({"id": "14", "command": ["sh", "-c", ")" + std::string(100, 'x') + R"( end"]})");
  std::string all;
  for (const std::string& line : lines_of_look(state)) {
    EXPECT_LE(line.size(), 40U);
    all += line;
  }
  EXPECT_THAT(all, HasSubstr(command));
}

TEST(Top, ALostEngineIsDrawnAndComesBack) {
  State state = with_submissions();
  on_reply(state, {.question = {}, .trouble = "nobody listens", .is_lost = true});
  state.now += 12;
  EXPECT_THAT(text_of(picture(state, {})),
              HasSubstr("no engine for 12s, asking again: nobody listens"));
  EXPECT_THAT(text_of(picture(state, {})), HasSubstr("both"));
  answer(state, About::Engine, R"({"state": "running", "uptime_s": 1})");
  EXPECT_THAT(text_of(picture(state, {})), Not(HasSubstr("no engine")));
}

TEST(Top, SortsByEachColumnAndBack) {
  State state = with_submissions();
  type(state, "s");
  EXPECT_EQ(state.list().sort, "id");
  type(state, "S");
  const Objects rows = rows_of(state.pane, state.list());
  EXPECT_EQ(id_of(state.pane, rows.front()), "9");
  for (int i = 0; i < 20 && !state.list().sort.empty(); ++i) type(state, "s");
  EXPECT_EQ(state.list().sort, "");
}

TEST(Top, AClickSelectsAndLooks) {
  State state = with_submissions();
  const std::size_t row = layout_of(state).first_row + 2;
  on_key(state, {.kind = Kind::Click, .row = row, .column = 3});
  EXPECT_EQ(state.list().selected, "9");
  on_key(state, {.kind = Kind::Click, .row = row, .column = 3});
  ASSERT_TRUE(state.look);
  EXPECT_EQ(state.look->id, "9");
  press(state, Kind::Escape);
  on_key(state, {.kind = Kind::Click, .row = layout_of(state).tabs_row, .column = 20});
  EXPECT_EQ(state.pane, Pane::Tasks);
}

TEST(Top, DrawsValuesAsBlocks) {
  EXPECT_EQ(sparkline({0, 1, 4, 8}, 6, true), "   ▁▄█");
  EXPECT_EQ(sparkline({0, 8}, 1, false), "#");
  EXPECT_EQ(grouped(1234567), "1,234,567");
}

}  // namespace
}  // namespace hpcbatch::top
