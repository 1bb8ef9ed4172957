#include "estimate/table_bytes.hpp"

#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace hpcbatch::estimate {
namespace {

void put(std::string& bytes, std::string_view text) {
  const std::uint64_t size = text.size();
  bytes.append(reinterpret_cast<const char*>(&size), sizeof size).append(text);
}
template <class Number>
void put(std::string& bytes, const std::vector<Number>& numbers) {
  put(bytes, std::string_view(reinterpret_cast<const char*>(numbers.data()),
                              numbers.size() * sizeof(Number)));
}

std::string_view taken(std::string_view& bytes) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) throw std::invalid_argument("the table to learn from is cut off");
  std::memcpy(&size, bytes.data(), sizeof size);
  bytes.remove_prefix(sizeof size);
  if (bytes.size() < size) throw std::invalid_argument("the table to learn from is cut off");
  const std::string_view text = bytes.substr(0, size);
  bytes.remove_prefix(size);
  return text;
}
template <class Number>
std::vector<Number> taken_numbers(std::string_view& bytes) {
  const std::string_view text = taken(bytes);
  std::vector<Number> numbers(text.size() / sizeof(Number));
  if (!numbers.empty()) std::memcpy(numbers.data(), text.data(), numbers.size() * sizeof(Number));
  return numbers;
}

}  // namespace

std::string to_bytes(const Lesson& lesson) {
  const TrainingTable& table = lesson.table;
  std::string bytes;
  put(bytes, lesson.config_yaml);
  put(bytes, std::to_string(table.inputs.features.size()));
  for (const std::string& name : table.inputs.features) put(bytes, name);
  put(bytes, table.inputs.values);
  put(bytes, table.waited);
  put(bytes, table.weights);
  put(bytes, table.is_pending);
  return bytes;
}

Lesson lesson_of(std::string_view bytes) {
  Lesson lesson;
  lesson.config_yaml = taken(bytes);
  std::size_t columns = std::stoul(std::string(taken(bytes)));
  for (; columns > 0; --columns) lesson.table.inputs.features.emplace_back(taken(bytes));
  lesson.table.inputs.values = taken_numbers<float>(bytes);
  lesson.table.waited = taken_numbers<double>(bytes);
  lesson.table.weights = taken_numbers<float>(bytes);
  lesson.table.is_pending = taken_numbers<std::uint8_t>(bytes);
  if (!bytes.empty()) throw std::invalid_argument("behind the table to learn from stands more");
  return lesson;
}

}  // namespace hpcbatch::estimate
