#include "framed_answer.hpp"

#include <algorithm>
#include <charconv>
#include <random>

namespace hpcbatch {
namespace {

constexpr std::size_t kMostAround = 16u << 10;

int number_in(std::string_view text) {
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// How much of the text's end may be the first part of `line`.
std::size_t beginning_at_end(std::string_view text, std::string_view line) {
  std::size_t length = std::min(text.size(), line.size() - 1);
  while (!text.ends_with(line.substr(0, length))) --length;
  return length;
}

void keep_the_end(std::string& text) {
  if (text.size() > kMostAround) text.erase(0, text.size() - kMostAround);
}

}  // namespace

Frame new_frame() {
  std::random_device random;
  std::string nonce;
  for (int word = 0; word < 4; ++word) {
    for (unsigned bits = random(), digit = 0; digit < 8; ++digit, bits >>= 4)
      nonce += "0123456789abcdef"[bits & 15];
  }
  return {nonce};
}

FramedAnswer::FramedAnswer(const Frame& frame, Take take)
    : begin_(frame.begin() + " "), end_(frame.end() + " "), take_(std::move(take)) {}

void FramedAnswer::received(Stream stream, std::string_view bytes) {
  Part& at = part(stream);
  at.pending.append(bytes);
  if (at.where == Where::Before && !look_for_begin(at)) return;
  if (at.where == Where::Within && !look_for_end(stream, at)) return;
  at.around += at.pending;
  at.pending.clear();
  keep_the_end(at.around);
}

bool FramedAnswer::look_for_begin(Part& at) {
  const auto found = at.pending.find(begin_);
  const auto line_end = found == std::string::npos ? found : at.pending.find('\n', found);
  if (line_end == std::string::npos) {
    at.around = at.pending.substr(0, found);
    keep_the_end(at.around);
    if (at.pending.size() > kMostAround && found == std::string::npos) {
      at.pending.erase(0, at.pending.size() - kMostAround / 2);
    }
    return false;
  }
  at.around = at.pending.substr(0, found);
  group_ = number_in(std::string_view(at.pending).substr(found + begin_.size()));
  at.pending.erase(0, line_end + 1);
  at.where = Where::Within;
  return true;
}

bool FramedAnswer::look_for_end(Stream stream, Part& at) {
  const auto found = at.pending.find(end_);
  if (found == std::string::npos) {
    give(stream, at, at.pending.size() - beginning_at_end(at.pending, end_));
    return false;
  }
  give(stream, at, found);
  const auto line_end = at.pending.find('\n');
  if (line_end == std::string::npos) return false;
  exit_code_ = number_in(std::string_view(at.pending).substr(end_.size()));
  at.pending.erase(0, line_end + 1);
  at.where = Where::After;
  return true;
}

void FramedAnswer::give(Stream stream, Part& at, std::size_t bytes) {
  const std::string_view part_of_answer = std::string_view(at.pending).substr(0, bytes);
  if (take_) {
    if (bytes > 0) take_(stream, part_of_answer);
  } else {
    at.kept.append(part_of_answer);
  }
  at.pending.erase(0, bytes);
}

bool FramedAnswer::has_begun() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& at) { return at.where != Where::Before; });
}

bool FramedAnswer::is_whole() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const Part& at) { return at.where == Where::After; });
}

}  // namespace hpcbatch
