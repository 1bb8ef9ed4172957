// Documents without the lines and the quotes of their texts.
#pragma once

#include "documents/view.hpp"

#include <algorithm>

namespace hpcbatch::fuzz {

inline bool same_document(const Node& a, const Node& b) {
  return a.kind == b.kind && a.text == b.text &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                    same_document) &&
         std::equal(a.fields.begin(), a.fields.end(), b.fields.begin(), b.fields.end(),
                    [](const Field& x, const Field& y) {
                      return x.name == y.name && same_document(x.value, y.value);
                    });
}

inline std::size_t nodes_in(const Node& node) {
  std::size_t count = 1;
  for (const Node& item : node.items) count += nodes_in(item);
  for (const Field& field : node.fields) count += nodes_in(field.value);
  return count;
}

}  // namespace hpcbatch::fuzz
