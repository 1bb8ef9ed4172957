#include "remote_copy.hpp"

#include "checksum.hpp"
#include "file_scripts.hpp"
#include "local_file.hpp"
#include "remote_shell.hpp"

#include <algorithm>
#include <charconv>
#include <functional>
#include <optional>

namespace hpcbatch {
namespace {

constexpr std::size_t kPiece = 256u << 10;
// Tries in a row that moved nothing.
constexpr int kMostInVain = 3;

using ReadPiece = std::function<Result<std::string>(std::uint64_t offset, std::size_t length)>;

/// The sum of what is not sent because it is there already; `size` bytes.
Result<void> add_beginning(SumBeside& checksum, std::uint64_t size, const ReadPiece& read) {
  while (checksum.size() < size) {
    const auto piece =
        read(checksum.size(), std::min<std::uint64_t>(kPiece, size - checksum.size()));
    if (!piece) return piece.error();
    if (piece->empty()) return Error{Error::Kind::Transient, "the file became shorter"};
    checksum.add(*piece);
  }
  return {};
}

/// Waits for how much is there, then sends the rest, and says whether the far side's sum is right.
class Sending final : public Question {
 public:
  Sending(const Frame& frame, const std::string& script, std::uint64_t size, ReadPiece read)
      : Question(frame, script), size_(size), read_(std::move(read)) {}

  std::string_view to_send() override {
    if (!script_is_sent()) return Question::to_send();
    if (error_ || !(begun_ || begin())) return {};
    if (at_ == piece_.size()) next_piece();
    return std::string_view(piece_).substr(at_);
  }
  void sent(std::size_t bytes) override {
    if (!script_is_sent()) return Question::sent(bytes);
    at_ += bytes;
    moved_ += bytes;
  }
  bool all_sent() const override {
    return script_is_sent() && (error_ || (is_judged_ && at_ == piece_.size()));
  }
  bool is_over() const override { return error_.has_value() || Question::is_over(); }

  std::uint64_t moved() const { return moved_; }
  const std::optional<Error>& error() const { return error_; }

 private:
  /// The first line: how much is there, and what makes the sum.
  bool begin() {
    const std::string& said = answer.kept(Stream::Output);
    const auto end = said.find('\n');
    if (end == std::string::npos) return false;
    std::uint64_t there = 0;
    const auto number = std::from_chars(said.data(), said.data() + end, there).ptr;
    const auto words = static_cast<std::size_t>(number - said.data());
    const auto sum = sum_named(std::string_view(said)
                                   .substr(words, end - words)
                                   .substr(std::min<std::size_t>(1, end - words)));
    if (!sum) {
      error_ = Error{Error::Kind::Transient, "the far side does not say what makes its checksum"};
      return false;
    }
    checksum_.emplace(*sum);
    offset_ = std::min(there, size_) / kBlock * kBlock;
    if (auto added = add_beginning(*checksum_, offset_, read_); !added) error_ = added.error();
    after_first_line_ = end + 1;
    return begun_ = !error_;
  }

  void next_piece() {
    if (is_judged_) return;
    if (offset_ == size_) return judge();
    auto piece =
        read_(offset_, static_cast<std::size_t>(std::min<std::uint64_t>(kPiece, size_ - offset_)));
    if (!piece || piece->empty()) {
      error_ = piece ? Error{Error::Kind::Transient, "the file became shorter while it was sent"}
                     : piece.error();
      return;
    }
    piece_ = std::move(*piece);
    at_ = 0;
    offset_ += piece_.size();
    checksum_->add(piece_);
  }

  void judge() {
    const std::string& said = answer.kept(Stream::Output);
    const auto end = said.find('\n', after_first_line_);
    if (end == std::string::npos) return;
    const std::string theirs = said.substr(after_first_line_, end - after_first_line_);
    piece_ = theirs == checksum_->text() ? "same\n" : "other\n";
    at_ = 0;
    is_judged_ = true;
  }

  std::uint64_t size_;
  ReadPiece read_;
  bool begun_{false};
  bool is_judged_{false};
  std::size_t after_first_line_{0};
  std::optional<SumBeside> checksum_;
  std::uint64_t offset_{0};
  std::string piece_;
  std::size_t at_{0};
  std::uint64_t moved_{0};
  std::optional<Error> error_;
};

std::chrono::milliseconds time_left(Deadline deadline) {
  return std::max(
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()),
      std::chrono::milliseconds{0});
}

Error too_late(const std::string& what) {
  return {Error::Kind::Transient,
          what + ": its deadline passed; what has arrived is kept for the next try"};
}

/// One try; nothing where another one is worth it.
struct Try {
  std::optional<Result<void>> result;
  std::uint64_t moved{0};
  Error error;
};

Result<void> try_until_done(const std::function<Try()>& once, const std::string& what,
                            Deadline deadline) {
  for (int in_vain = 0;;) {
    if (std::chrono::steady_clock::now() >= deadline) return too_late(what);
    const Try done = once();
    if (done.result) return *done.result;
    in_vain = done.moved > 0 ? 0 : in_vain + 1;
    if (in_vain >= kMostInVain) return done.error;
  }
}

/// What is sent, and what tells it from all else that may go to the same place.
struct Source {
  std::uint64_t size{0};
  std::string mark;
  ReadPiece read;
};

Try send_once(Login& login, const Copy& file, const Source& source, Deadline deadline) {
  const std::string what =
      "cannot copy " + (file.from.empty() ? "a text" : file.from) + " to " + file.to;
  const Frame frame = new_frame();
  const std::string script =
      framed(frame, receive_script(file, source.size, source.mark), time_left(deadline));
  Sending sending(frame, script, source.size, source.read);
  const auto ended = login.exec(
      starter(script.size(), InputAfterScript::Yes, FarEnvironment::Minimal), sending, deadline);
  Try done{.result = {}, .moved = sending.moved(), .error = {}};
  if (sending.error()) {
    done.result = Result<void>(Error{sending.error()->kind, what + ": " + sending.error()->text});
  } else if (!ended) {
    done.error = ended.error();
    // Only what was interrupted is tried again: a login that fails has its own pauses.
    if (!sending.answer.has_begun()) done.result = Result<void>(ended.error());
  } else if (*ended == Ending::TimedOut) {
    done.result = Result<void>(too_late(what));
  } else if (!sending.answer.is_whole() || (sending.answer.exit_code() == kCutOff &&
                                            sending.answer.kept(Stream::Error).empty())) {
    done.error = {Error::Kind::Transient, what + ": the connection was cut"};
  } else if (sending.answer.exit_code() == kWrongContent) {
    done.error = {Error::Kind::Transient, what + ": what arrived has another checksum"};
    done.moved = 0;
  } else if (sending.answer.exit_code() != 0) {
    done.result = Result<void>(script_error(what, sending.answer.kept(Stream::Error)));
  } else {
    done.result = Result<void>();
  }
  return done;
}

/// Takes what is sent into the file that it is for.
class Receiving final : public Question {
 public:
  Receiving(const Frame& frame, const std::string& script, const Copy& file)
      : Question(frame, script, {},
                 [this](Stream stream, std::string_view bytes) { take(stream, bytes); }),
        file_(file) {}

  std::string_view to_send() override {
    return script_is_sent() ? std::string_view(block_).substr(block_sent_) : Question::to_send();
  }
  void sent(std::size_t bytes) override {
    if (!script_is_sent()) return Question::sent(bytes);
    block_sent_ += bytes;
  }
  bool all_sent() const override {
    return script_is_sent() && !block_.empty() && block_sent_ == block_.size();
  }
  bool is_over() const override { return error_.has_value() || Question::is_over(); }

  std::optional<TargetFile>& target() { return target_; }
  const std::optional<Error>& error() const { return error_; }
  const std::string& said() const { return said_; }
  /// What the far side says the sum is; empty where it has said something else.
  std::string their_sum() const {
    constexpr std::string_view kSays = "sum ";
    const bool is_all = said_.starts_with(kSays) && said_.find('\n') + 1 == said_.size();
    return is_all ? said_.substr(kSays.size(), said_.size() - kSays.size() - 1) : "";
  }
  std::string our_sum() { return checksum_->text(); }
  std::uint64_t moved() const { return moved_; }

 private:
  void take(Stream stream, std::string_view bytes) {
    if (stream == Stream::Error) {
      said_.append(bytes);
    } else if (target_) {
      keep(bytes);
    } else {
      head_.append(bytes);
      const auto line_end = head_.find('\n');
      if (line_end == std::string::npos) return;
      begin(head_.substr(0, line_end));
      if (target_) keep(std::string_view(head_).substr(line_end + 1));
    }
  }
  void begin(const std::string& size_and_time) {
    auto target = TargetFile::open(file_, file_.from + " " + size_and_time);
    const auto sum = sum_named(size_and_time.substr(size_and_time.rfind(' ') + 1));
    if (!target || !sum) {
      error_ = target ? Error{Error::Kind::Transient,
                              "the far side does not say what makes its checksum"}
                      : target.error();
      return;
    }
    const std::uint64_t block = target->size() / kBlock;
    if (auto cut = target->cut(block * kBlock); !cut) error_ = cut.error();
    target_.emplace(std::move(*target));
    checksum_.emplace(*sum);
    const auto read = [this](std::uint64_t offset, std::size_t length) {
      return target_->read(offset, length);
    };
    if (auto added = add_beginning(*checksum_, block * kBlock, read); !added && !error_)
      error_ = added.error();
    block_ = std::to_string(block) + "\n";
  }
  void keep(std::string_view bytes) {
    moved_ += bytes.size();
    checksum_->add(bytes);
    if (auto kept = target_->append(bytes); !kept && !error_) error_ = kept.error();
  }

  const Copy& file_;
  std::string head_;
  std::string said_;
  std::string block_;
  std::size_t block_sent_{0};
  std::uint64_t moved_{0};
  std::optional<TargetFile> target_;
  std::optional<SumBeside> checksum_;
  std::optional<Error> error_;
};

Result<void> check_and_publish(Receiving& receiving, const std::string& what) {
  const std::string theirs = receiving.their_sum();
  if (theirs.empty()) return script_error(what, receiving.said());
  if (theirs == receiving.our_sum()) return receiving.target()->publish();
  receiving.target()->discard();
  return Error{Error::Kind::Transient,
               what + ": what arrived has another checksum; was it changed while it was read?"};
}

Try receive_once(Login& login, const Copy& file, Deadline deadline) {
  const std::string what = "cannot copy " + file.from + " from " + login.name() + " to " + file.to;
  const Frame frame = new_frame();
  const std::string script = framed(frame, send_script(file.from), time_left(deadline));
  Receiving receiving(frame, script, file);
  const auto ended = login.exec(
      starter(script.size(), InputAfterScript::Yes, FarEnvironment::Minimal), receiving, deadline);
  Try done{.result = {}, .moved = receiving.moved(), .error = {}};
  if (receiving.error()) {
    done.result = Result<void>(*receiving.error());
  } else if (!ended) {
    done.error = ended.error();
    if (!receiving.answer.has_begun()) done.result = Result<void>(ended.error());
  } else if (*ended == Ending::TimedOut) {
    done.result = Result<void>(too_late(what));
  } else if (!receiving.answer.is_whole()) {
    done.error = {Error::Kind::Transient, what + ": the connection was cut"};
  } else if (receiving.answer.exit_code() != 0 || !receiving.target()) {
    done.result = Result<void>(script_error(what, receiving.said()));
  } else {
    done.result = check_and_publish(receiving, what);
  }
  return done;
}

Result<void> send_source(Login& login, const Copy& file, const Source& source, Deadline deadline) {
  return try_until_done(
      [&] { return send_once(login, file, source, deadline); },
      "cannot copy " + (file.from.empty() ? "a text" : file.from) + " to " + file.to, deadline);
}

}  // namespace

Result<void> send_file(Login& login, const Copy& file, Deadline deadline) {
  const auto opened = SourceFile::open(file.from);
  if (!opened) return opened.error();
  const auto read = [&](std::uint64_t offset, std::size_t length) {
    return opened->read(offset, length);
  };
  auto sent = send_source(login, file, {opened->size(), opened->mark(), read}, deadline);
  // Said first: it is why the checksums differ.
  if (auto same = opened->unchanged(); !same) return same;
  return sent;
}

Result<void> send_text(Login& login, const FileText& file, Deadline deadline) {
  const auto read = [&](std::uint64_t offset, std::size_t length) {
    return Result<std::string>(file.text.substr(offset, length));
  };
  return send_source(login, {"", file.path, file.mode},
                     {file.text.size(), sha256_of(file.text), read}, deadline);
}

Result<void> receive_file(Login& login, const Copy& file, Deadline deadline) {
  return try_until_done([&] { return receive_once(login, file, deadline); },
                        "cannot copy " + file.from + " to " + file.to, deadline);
}

}  // namespace hpcbatch
