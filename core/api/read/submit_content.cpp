#include "api/read/submit_content.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/serializer.hpp>

#include <cstring>
#include <utility>

namespace hpcbatch {

namespace {

constexpr std::size_t kDigest = crypto_generichash_BYTES_MIN;

}  // namespace

SubmitContent::SubmitContent() : state_() {
  crypto_generichash_init(&state_, nullptr, 0, kDigest);
}

void SubmitContent::add(std::string_view key, const boost::json::value& value) {
  if (key == "environment" || key == "umask" || key == "within" || key == "reader" ||
      key == "lease_s") {
    return;
  }
  add_text(boost::json::serialize(boost::json::string_view(key.data(), key.size())));
  add_value(value);
}

void SubmitContent::begin_list(std::string_view key) {
  add_text(boost::json::serialize(boost::json::string_view(key.data(), key.size())));
  add_text("[");
  is_first_ = true;
}

void SubmitContent::add_to_list(const boost::json::value& value) {
  if (!std::exchange(is_first_, false)) add_text(",");
  add_value(value);
}

void SubmitContent::end_list() {
  add_text("]");
}

std::uint64_t SubmitContent::hash() {
  unsigned char digest[kDigest];
  crypto_generichash_final(&state_, digest, sizeof digest);
  std::uint64_t hash = 0;
  std::memcpy(&hash, digest, sizeof hash);
  return hash >> 1;  // the store's integers have a sign
}

void SubmitContent::add_text(std::string_view text) {
  crypto_generichash_update(&state_, reinterpret_cast<const unsigned char*>(text.data()),
                            text.size());
}

void SubmitContent::add_value(const boost::json::value& value) {
  boost::json::serializer serializer;
  serializer.reset(&value);
  char piece[4096];
  while (!serializer.done()) {
    const auto text = serializer.read(piece, sizeof piece);
    add_text({text.data(), text.size()});
  }
}

std::uint64_t content_of(const boost::json::value& submit) {
  SubmitContent content;
  for (const auto& [key, value] : submit.get_object()) content.add(std::string_view(key), value);
  return content.hash();
}

}  // namespace hpcbatch
