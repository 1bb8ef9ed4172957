#include "api/read/pilot_fields.hpp"

#include "api/read/json_values.hpp"
#include "documents/task_values.hpp"
#include "model/ids.hpp"

#include <chrono>
#include <cstdint>

namespace hpcbatch {
namespace {

namespace json = boost::json;

/// As a field of a message of Protocol Buffers ("Encoding": a tag and a varint).
void put_number(std::uint32_t field, std::uint64_t number, std::string& message) {
  for (std::uint64_t rest : {std::uint64_t{field} << 3, number}) {
    for (; rest > 0x7f; rest >>= 7) message += static_cast<char>(0x80 | (rest & 0x7f));
    message += static_cast<char>(rest);
  }
}

std::uint64_t milliseconds(Duration time) {
  return static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::milliseconds>(time).count());
}

}  // namespace

void put_for_pilot(const TaskKey& key, const json::value& value, const std::string& where,
                   std::string& message) {
  const std::uint32_t field = key.more.field;
  switch (key.type) {
    case TaskKey::Type::Flag:
      return put_number(field, bool_of(value, where) ? 1 : 0, message);
    case TaskKey::Type::TimeSpan:
      return put_number(field, milliseconds(duration_of(value, where)), message);
    case TaskKey::Type::Signal: {
      const EarlySignal signal = read_early_signal(text_of(value, where));
      put_number(field, static_cast<std::uint64_t>(signal.number), message);
      return put_number(field + 1, milliseconds(signal.before), message);
    }
    case TaskKey::Type::Choice: {
      std::uint64_t number = 0;
      const std::string word = text_of(value, where) + " ";
      for (std::string words = std::string(key.more.words) + " "; !words.starts_with(word);
           ++number)
        words.erase(0, words.find(' ') + 1);
      return put_number(field, number, message);
    }
    default:
      return put_number(
          field, static_cast<std::uint64_t>(whole_of(value, where, key.more.least, key.more.most)),
          message);
  }
}

}  // namespace hpcbatch
