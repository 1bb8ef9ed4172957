// Values of a task's keys that people have written as text: the only place where such texts are
// read.
#pragma once

#include "documents/task_keys.hpp"

#include "model/ids.hpp"

#include <boost/json/value.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hpcbatch {

/// Whether numbers in a value stay the letters of their author.
bool keeps_letters(TaskKey::Type type);
/// Whether an option of it may be given several times.
bool takes_several(TaskKey::Type type);

/// The value that people have written as text, as a request has it: `4`, `8G`, `a100:2`,
/// `gpus=1,cpus=4`.  Of what takes several there may be several texts.  Types whose texts are the
/// API's own to judge come back as they are.  Throws std::invalid_argument with one sentence that
/// says what is expected.
boost::json::value task_value(const TaskKey& key, std::span<const std::string> texts);
boost::json::value task_value(const TaskKey& key, std::string_view text);
/// The same of a value of a request or a file where it is such a text, or a list of them; nothing
/// where it stays as it is.
std::optional<boost::json::value> value_of_text(const TaskKey& key, const boost::json::value& said);

// The same of other values.  Each throws std::invalid_argument with one sentence.

/// Bytes.
std::uint64_t read_size(std::string_view text);
/// Seconds as `90`, `1h30m` or `01:30:00`; the text as it came.
const std::string& checked_size(const std::string& text);
/// `TERM`, `SIGUSR1`, `usr1` or `10`; 0: it is none.
int parse_signal(std::string_view text);
/// `TERM@2m`, `USR1` (a minute before).
struct EarlySignal {
  int number{0};
  Duration before{std::chrono::minutes{1}};
};
EarlySignal read_early_signal(std::string_view text);
/// Where in `12+10m` the time begins that is to pass from the start of 12 on, with its `+`; its end
/// where there is none.
std::size_t delay_at(std::string_view word);
const std::string& checked_duration(const std::string& text);
/// A whole number from `low` to `high`.
std::int64_t parse_whole(std::string_view text, std::int64_t low, std::int64_t high);
/// A finite number that is not negative.
double parse_amount(std::string_view text);

}  // namespace hpcbatch
