// Small words that people and programs write: times, sizes, ranges, GPUs, binds.
#include "fuzz/harness.hpp"
#include "hardware/gpu_kind.hpp"
#include "model/index_set.hpp"
#include "model/item.hpp"
#include "model/needs.hpp"
#include "model/quantities.hpp"

#include <stdexcept>

HPCBATCH_HARNESS(words, bytes) {
  if (const auto time = parse_duration(bytes)) {
    check(time->count() >= 0, "no time is negative");
    check(parse_duration(show_duration(*time)).has_value(), "a time that is shown can be read");
  }
  if (const auto size = parse_size(bytes))
    check(parse_size(show_size(*size)).has_value(), "a size that is shown can be read");
  if (const auto set = parse_index_set(bytes)) {
    check(!set->empty(), "a set has something in it");
    check(parse_index_set(to_string(*set)) == set, "a set survives being written");
  }
  try {
    const auto [kinds, count] = parse_gpus(bytes);
    check(!wrong_gpu_count(count), "GPUs that are taken are a number of them");
    check(kinds.empty() || !wrong_gpu_kinds(kinds), "kinds of GPU that are taken are some");
  } catch (const std::invalid_argument&) {
  }
  if (const auto bind = parse_container_bind(bytes))
    check(!bind->from.empty() && !bind->to.empty(), "a bind has both its ends");
  check(Item::unpacked(bytes).columns().size() <= bytes.size() + 1, "no more columns than bytes");
  has_place(bytes);
  first_item_place(bytes);
}
