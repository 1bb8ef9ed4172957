#include "api/answers/item_json.hpp"

#include "documents/text_check.hpp"

#include <sodium.h>

#include <utility>

namespace hpcbatch {

std::string base64(std::string_view bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()),
                    bytes.size(), sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // the zero behind it
  return text;
}

void put_item(boost::json::object& object, const Item& item) {
  object["item"] = item.text();
  if (find_invalid_utf8(item.text())) object["item_base64"] = base64(item.text());
}

void put_item_and_columns(boost::json::object& object, const Item& item) {
  put_item(object, item);
  if (item.columns().empty()) return;
  boost::json::object columns, as_bytes;
  for (const auto& [name, value] : item.columns()) {
    columns[name] = value;
    if (find_invalid_utf8(value)) as_bytes[name] = base64(value);
  }
  object["columns"] = std::move(columns);
  if (!as_bytes.empty()) object["columns_base64"] = std::move(as_bytes);
}

}  // namespace hpcbatch
