#include "wire/file_store.hpp"

#include "wire/checksum.hpp"

#include <algorithm>
#include <utility>

namespace hpcbatch::wire {
namespace {

constexpr std::string_view kFiles = "files/";
constexpr std::string_view kIncoming = "files/incoming/";
constexpr std::size_t kLongestEnding = 40;

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

/// A cut never goes through the middle of a letter of UTF-8.
std::size_t cut_at(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text.size();
  std::size_t at = most;
  while (at > 0 && at + 4 > most && (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U) --at;
  return (static_cast<unsigned char>(text[at]) & 0xC0U) == 0x80U ? most : at;
}

bool is_hash(std::string_view text) {
  return text.size() == kHashDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

std::string stored_name(std::string_view path) {
  std::string name(path.substr(path.find_last_of('/') + 1));
  std::replace_if(name.begin(), name.end(), is_control, '_');
  if (name.size() > kLongestStoredName) {
    // All that follows the last few dots, such as .tar.gz.
    const std::size_t dot = name.find('.', name.size() - kLongestEnding);
    const std::string ending = dot == std::string::npos ? "" : name.substr(dot);
    name.resize(cut_at(name, kLongestStoredName - ending.size()));
    name += ending;
  }
  if (name.empty() || name == "." || name == "..") return "_";
  // A command would take it for an option.
  if (name.front() == '-') name.front() = '_';
  return name;
}

std::string store_key(std::string_view hash, std::string_view name) {
  return std::string(hash) + '/' + std::string(name);
}

bool is_store_key(std::string_view key) {
  if (key.size() <= kHashDigits + 1 || key[kHashDigits] != '/') return false;
  const std::string_view name = key.substr(kHashDigits + 1);
  return is_hash(key.substr(0, kHashDigits)) && name.find('/') == std::string_view::npos &&
         stored_name(name) == name;
}

std::string folder_of_key(std::string_view key) {
  return std::string(kFiles) + std::string(key.substr(0, 2)) + '/' +
         std::string(key.substr(0, kHashDigits));
}

std::string place_of_key(std::string_view key) {
  return std::string(kFiles) + std::string(key.substr(0, 2)) + '/' + std::string(key);
}

std::string incoming_of_key(std::string_view key) {
  return std::string(kIncoming) + std::string(key);
}

std::string incoming_folder_of_key(std::string_view key) {
  return std::string(kIncoming) + std::string(key.substr(0, kHashDigits));
}

std::string key_of_place(std::string_view place) {
  if (place.size() < kFiles.size() + 3 || !place.starts_with(kFiles)) return {};
  const std::string_view key = place.substr(kFiles.size() + 3);
  return is_store_key(key) && place_of_key(key) == place ? std::string(key) : std::string();
}

bool is_plain_path(std::string_view path) {
  if (path.empty() || path.find('\0') != std::string_view::npos) return false;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const std::string_view step = path.substr(at, end - at);
    if (step.empty() || step == "." || step == "..") return false;
    at = end + 1;
  }
  return true;
}

bool may_be_dropped(std::string_view path) {
  return is_plain_path(path) && (path.starts_with(kFiles) || path.starts_with("out/"));
}

namespace {

// What small files go in, and the largest of them alone.
constexpr std::size_t kLargestFileFrame = std::size_t{64} << 20;

}  // namespace

void set_file_frame_head(std::string& frame, std::size_t begin, FileFrame::Kind kind) {
  const std::string_view bytes = std::string_view(frame).substr(begin + kFileFrameHead);
  std::string head;
  append_number(head, static_cast<std::uint32_t>(bytes.size()));
  head += static_cast<char>(kind);
  append_number(head, crc32c(bytes));
  frame.replace(begin, kFileFrameHead, head);
}

void append_file_frame(std::string& out, FileFrame::Kind kind, std::string_view bytes) {
  const std::size_t begin = out.size();
  out.append(kFileFrameHead, '\0').append(bytes);
  set_file_frame_head(out, begin, kind);
}

char* FileFrames::room(std::size_t most) {
  if (begin_ == end_) begin_ = end_ = 0;
  if (end_ + most > buffer_.size()) {
    buffer_.erase(0, begin_);
    end_ -= std::exchange(begin_, 0);
    if (end_ + most > buffer_.size()) buffer_.resize(std::max(end_ + most, 2 * end_));
  }
  return buffer_.data() + end_;
}

hpcbatch::Result<std::optional<FileFrame>> FileFrames::next() {
  const std::string_view there = std::string_view(buffer_).substr(begin_, end_ - begin_);
  if (there.size() < kFileFrameHead) return std::optional<FileFrame>();
  const auto size = number_at<std::uint32_t>(there, 0);
  const auto kind = static_cast<unsigned char>(there[4]);
  if (size > kLargestFileFrame || kind < 1 || kind > 4)
    return Error{Error::Kind::Transient,
                 "what came over the stream of files is none of our frames"};
  if (there.size() < kFileFrameHead + size) return std::optional<FileFrame>();
  const std::string_view bytes = there.substr(kFileFrameHead, size);
  if (crc32c(bytes) != number_at<std::uint32_t>(there, 5))
    return Error{Error::Kind::Transient, "what came over the stream of files has another checksum"};
  begin_ += kFileFrameHead + size;
  return std::optional(FileFrame{static_cast<FileFrame::Kind>(kind), bytes});
}

}  // namespace hpcbatch::wire
