#include "wire/spool.hpp"

#include "wire/checksum.hpp"
#include "wire/little_endian.hpp"

#include <algorithm>
#include <array>
#include <charconv>

namespace hpcbatch::wire {
namespace {

constexpr std::string_view kPieceMark = "hbspool1";
constexpr std::string_view kExchangeMark = "hbexchg1";
constexpr std::size_t kNameLength = 10;

std::string hex(std::uint64_t number) {
  std::array<char, 17> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), number, 16).ptr;
  std::string digits(text.data(), end);
  return std::string(16 - digits.size(), '0') + digits;
}

/// mark, number, length, checksum of all before it and of the bytes, bytes.
std::string sealed(std::string_view mark, std::uint64_t number, std::string_view bytes) {
  std::string file(mark);
  append_number(file, number);
  append_number(file, static_cast<std::uint32_t>(bytes.size()));
  append_number(file, crc32(bytes, crc32(file)));
  file += bytes;
  return file;
}

hpcbatch::Result<std::string> opened(std::string_view mark, std::uint64_t number,
                                     std::string_view file) {
  const auto not_yet = [](const std::string& why) { return Error{Error::Kind::Transient, why}; };
  const std::size_t header = mark.size() + sizeof(std::uint64_t) + 2 * sizeof(std::uint32_t);
  if (file.size() < header) return not_yet("it is cut off");
  if (!file.starts_with(mark)) return not_yet("it does not begin as one");
  const std::size_t checked = header - sizeof(std::uint32_t);
  if (number_at<std::uint64_t>(file, mark.size()) != number) return not_yet("it is another one's");
  if (number_at<std::uint32_t>(file, mark.size() + sizeof number) != file.size() - header)
    return not_yet("it is cut off");
  const std::string_view bytes = file.substr(header);
  if (number_at<std::uint32_t>(file, checked) != crc32(bytes, crc32(file.substr(0, checked))))
    return not_yet("its checksum is wrong");
  return std::string(bytes);
}

}  // namespace

std::string spool_folder(const std::string& workspace) {
  return workspace + "/spool";
}

std::string spool_connection(const PilotName& pilot, std::uint64_t random) {
  return pilot.allocation + "." + std::to_string(pilot.rank) + "." + hex(random);
}

std::string piece_name(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(kNameLength - std::min(kNameLength, digits.size()), '0') + digits;
}

std::uint64_t piece_number(std::string_view name) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  // A piece has one name: another file may not stand for it.
  return error == std::errc{} && end == name.data() + name.size() && piece_name(number) == name
             ? number
             : 0;
}

std::string sealed_piece(std::uint64_t number, std::string_view bytes) {
  return sealed(kPieceMark, number, bytes);
}

hpcbatch::Result<std::string> opened_piece(std::uint64_t number, std::string_view file) {
  return opened(kPieceMark, number, file);
}

std::string sealed_exchange(std::string_view message) {
  return sealed(kExchangeMark, 0, message);
}

hpcbatch::Result<std::string> opened_exchange(std::string_view bytes) {
  return opened(kExchangeMark, 0, bytes);
}

}  // namespace hpcbatch::wire
