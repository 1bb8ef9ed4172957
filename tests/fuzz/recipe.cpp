// What a task runs, as the store gives it back after any damage, and how an item is put into it.
#include "links/recipe.hpp"
#include "fuzz/harness.hpp"
#include "model/item.hpp"
#include "wire/wire.pb.h"

HPCBATCH_HARNESS(recipe, bytes) {
  Input input(bytes);
  const std::string item(input.part());
  const std::string stored(input.rest());
  const Filled filled = filled_in(stored);
  wire::Start start = start_from_bytes(stored);
  const std::string again = to_bytes(start, filled);
  check(to_bytes(start_from_bytes(again), filled_in(again)) == again,
        "a recipe survives being kept");
  fill(start, filled, TaskId{ArrayId{12}, 3}, [&] { return std::string(item); });
  const Item own = item_of(stored, item);
  check(own.columns().size() <= item.size() + 1, "no more columns than bytes");
  const std::string text = with_item(stored, own, 3);
  check(text.size() <= stored.size() * (item.size() + 16), "a place holds one item at most");
  columns_asked_for(stored);
}
