#include "media_file.hpp"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
}

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace hpcbatch {
namespace {

constexpr int kBuffer = 64 << 10;
/// Of a file that does not say how long it is: half an hour and more of sound, a tenth of a second's
/// work where it lies in memory.
constexpr std::int64_t kMostSampled = std::int64_t{32} << 20;
constexpr int kMostPackets = 200'000;
/// A guess of libavformat below this is one that text and noise get.
constexpr int kLeastScore = AVPROBE_SCORE_RETRY;

std::runtime_error cannot(const std::string& path, const std::string& why) {
  return std::runtime_error("cannot tell what the recording or image " + path + " is: " + why);
}

std::string words_of(int error) {
  std::array<char, AV_ERROR_MAX_STRING_SIZE> text{};
  ::av_strerror(error, text.data(), text.size());
  return text.data();
}

/// The only file that libavformat is given.
class ReadFile {
 public:
  explicit ReadFile(const std::string& path)
      // One that is a FIFO is opened without its other end, and refused.
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (descriptor_ < 0) throw cannot(path, std::strerror(errno));
    struct stat facts {};
    const bool is_known = ::fstat(descriptor_, &facts) == 0;
    size_ = facts.st_size;
    const char* const why = !is_known || !S_ISREG(facts.st_mode) ? "it is no regular file"
                            : size_ == 0                         ? "it is empty"
                                                                 : nullptr;
    if (why == nullptr) return;
    ::close(descriptor_);
    throw cannot(path, why);
  }
  ~ReadFile() { ::close(descriptor_); }
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;

  std::int64_t size() const { return size_; }

  static int read(void* self, std::uint8_t* to, int size) {
    auto& file = *static_cast<ReadFile*>(self);
    ssize_t got = 0;
    do {
      got = ::pread(file.descriptor_, to, static_cast<std::size_t>(size), file.at_);
    } while (got < 0 && errno == EINTR);
    if (got < 0) return AVERROR(errno);
    if (got == 0) return AVERROR_EOF;
    file.at_ += got;
    return static_cast<int>(got);
  }

  static std::int64_t seek(void* self, std::int64_t offset, int whence) {
    auto& file = *static_cast<ReadFile*>(self);
    if ((whence & AVSEEK_SIZE) != 0) return file.size_;
    const int from = whence & ~AVSEEK_FORCE;
    const std::int64_t base = from == SEEK_CUR   ? file.at_
                              : from == SEEK_END ? file.size_
                                                 : std::int64_t{0};
    if (base + offset < 0) return AVERROR(EINVAL);
    return file.at_ = base + offset;
  }

 private:
  int descriptor_;
  std::int64_t size_{0};
  std::int64_t at_{0};
};

struct FreeReader {
  void operator()(AVIOContext* reader) const {
    ::av_freep(static_cast<void*>(&reader->buffer));
    ::avio_context_free(&reader);
  }
};
struct FreeContext {
  void operator()(AVFormatContext* context) const { ::avformat_close_input(&context); }
};
struct FreePacket {
  void operator()(AVPacket* packet) const { ::av_packet_free(&packet); }
};

/// A playlist names files of others and servers: none of them is opened.
int open_nothing(AVFormatContext* /*of*/, AVIOContext** /*into*/, const char* /*url*/,
                 int /*flags*/, AVDictionary** /*options*/) {
  return AVERROR(EPERM);
}

class OpenMedia {
 public:
  explicit OpenMedia(const std::string& path) : file_(path) {
    auto* const buffer = static_cast<unsigned char*>(::av_malloc(kBuffer));
    reader_.reset(
        ::avio_alloc_context(buffer, kBuffer, 0, &file_, ReadFile::read, nullptr, ReadFile::seek));
    AVFormatContext* context = ::avformat_alloc_context();
    if (buffer == nullptr || reader_ == nullptr || context == nullptr) throw std::bad_alloc();
    context->pb = reader_.get();
    context->io_open = open_nothing;
    ::av_opt_set(context, "protocol_whitelist", "none", 0);
    const AVInputFormat* format = nullptr;
    const int score = ::av_probe_input_buffer2(reader_.get(), &format, "", nullptr, 0, 0);
    if (score < kLeastScore) {
      ::avformat_free_context(context);
      throw cannot(path, "libavformat knows no such kind of file; give one that ffprobe can read");
    }
    // Frees the context where it fails.
    if (const int failed = ::avformat_open_input(&context, "", format, nullptr); failed < 0)
      throw cannot(path, "it looks like " + std::string(format->name) + ", but " +
                             words_of(failed) + "; it may be cut off or damaged");
    context_.reset(context);
    if (const int failed = ::avformat_find_stream_info(context, nullptr); failed < 0)
      throw cannot(path, words_of(failed) + "; it may be cut off or damaged");
  }

  AVFormatContext& context() { return *context_; }
  std::int64_t size() const { return file_.size(); }
  const AVStream* best(AVMediaType type) {
    const int index = ::av_find_best_stream(context_.get(), type, -1, -1, nullptr, 0);
    return index < 0 ? nullptr : context_->streams[index];
  }

 private:
  ReadFile file_;
  std::unique_ptr<AVIOContext, FreeReader> reader_;
  std::unique_ptr<AVFormatContext, FreeContext> context_;
};

bool is_cover(const AVStream& stream) {
  return (stream.disposition & AV_DISPOSITION_ATTACHED_PIC) != 0;
}

/// Sound, or pictures that are no cover.
bool counts(const AVStream& stream) {
  const AVMediaType type = stream.codecpar->codec_type;
  return type == AVMEDIA_TYPE_AUDIO || (type == AVMEDIA_TYPE_VIDEO && !is_cover(stream));
}

std::optional<double> seconds_in_heads(AVFormatContext& context) {
  std::optional<double> longest;
  for (unsigned i = 0; i < context.nb_streams; ++i) {
    const AVStream& stream = *context.streams[i];
    if (!counts(stream) || stream.duration == AV_NOPTS_VALUE || stream.duration < 0) continue;
    const double seconds = static_cast<double>(stream.duration) * ::av_q2d(stream.time_base);
    longest = std::max(longest.value_or(0), seconds);
  }
  if (!longest && context.duration != AV_NOPTS_VALUE && context.duration >= 0)
    longest = static_cast<double>(context.duration) / AV_TIME_BASE;
  return longest;
}

/// From where to where the packets of one stream go.
struct Span {
  std::optional<double> first;
  double last{0};
  double summed{0};
  double seconds() const { return first ? std::max(summed, last - *first) : summed; }
};

/// By the packets of the file, or, where it is large, by those of its beginning and the share of the
/// file that they are.
double seconds_in_packets(OpenMedia& media) {
  AVFormatContext& context = media.context();
  std::vector<Span> spans(context.nb_streams);
  const std::unique_ptr<AVPacket, FreePacket> packet(::av_packet_alloc());
  if (packet == nullptr) throw std::bad_alloc();
  bool is_whole = false;
  std::int64_t bytes = 0;
  for (int packets = 0; packets < kMostPackets && bytes < kMostSampled; ++packets) {
    if (::av_read_frame(&context, packet.get()) < 0) {
      is_whole = true;
      break;
    }
    // Streams may turn up late; those are left alone.
    if (const auto index = static_cast<std::size_t>(packet->stream_index); index < spans.size()) {
      const AVStream& stream = *context.streams[index];
      const double unit = ::av_q2d(stream.time_base);
      const double length = static_cast<double>(packet->duration) * unit;
      Span& span = spans[index];
      span.summed += length;
      if (packet->pts != AV_NOPTS_VALUE) {
        const double start = static_cast<double>(packet->pts) * unit;
        span.first = std::min(span.first.value_or(start), start);
        span.last = std::max(span.last, start + length);
      }
    }
    bytes = ::avio_tell(context.pb);
    ::av_packet_unref(packet.get());
  }
  double longest = 0;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (counts(*context.streams[i])) longest = std::max(longest, spans[i].seconds());
  }
  const double share =
      static_cast<double>(std::max<std::int64_t>(bytes, 1)) / static_cast<double>(media.size());
  return is_whole ? longest : longest / std::min(share, 1.0);
}

bool is_still(const AVFormatContext& context) {
  return std::string_view(context.iformat->name).ends_with("_pipe");
}

/// Of plain samples: what the file has room for, whatever length its head claims, which a program
/// that wrote into a pipe had to guess.
std::optional<double> seconds_with_room(OpenMedia& media) {
  const AVFormatContext& context = media.context();
  const AVStream* const sound = media.best(AVMEDIA_TYPE_AUDIO);
  if (context.nb_streams != 1 || sound == nullptr || sound->codecpar->bit_rate <= 0 ||
      ::av_get_exact_bits_per_sample(sound->codecpar->codec_id) == 0)
    return std::nullopt;
  return static_cast<double>(media.size()) * 8 / static_cast<double>(sound->codecpar->bit_rate);
}

double seconds_of(OpenMedia& media) {
  const std::optional<double> room = seconds_with_room(media);
  const std::optional<double> said = seconds_in_heads(media.context());
  const bool is_guess =
      !said || (media.context().duration_estimation_method == AVFMT_DURATION_FROM_BITRATE && !room);
  const double seconds = is_guess ? seconds_in_packets(media) : *said;
  return room ? std::min(seconds, *room) : seconds;
}

double frames_of(const AVStream& picture, double seconds) {
  if (picture.nb_frames > 0) return static_cast<double>(picture.nb_frames);
  const AVRational rate =
      picture.avg_frame_rate.num > 0 ? picture.avg_frame_rate : picture.r_frame_rate;
  return rate.num > 0 && rate.den > 0 ? std::round(seconds * ::av_q2d(rate)) : 0;
}

}  // namespace

MediaFacts look_at_media(const std::string& path) {
  // Its words would go to the engine's log; what matters of them is in ours.
  ::av_log_set_level(AV_LOG_QUIET);
  OpenMedia media(path);
  MediaFacts facts;
  const AVStream* const sound = media.best(AVMEDIA_TYPE_AUDIO);
  const AVStream* picture = media.best(AVMEDIA_TYPE_VIDEO);
  if (picture != nullptr && is_cover(*picture)) picture = nullptr;
  if (sound == nullptr && picture == nullptr)
    throw cannot(path, "it has neither sound nor pictures");
  if (sound != nullptr) {
    facts.channels = sound->codecpar->ch_layout.nb_channels;
    facts.sample_rate = sound->codecpar->sample_rate;
  }
  if (picture != nullptr) {
    facts.width = picture->codecpar->width;
    facts.height = picture->codecpar->height;
  }
  const bool has_size = facts.width > 0 && facts.height > 0;
  if (facts.sample_rate <= 0 && !has_size)
    throw cannot(path, "its head does not say what is in it; it may be cut off or damaged");
  if (is_still(media.context())) {
    facts.frames = 1;
    return facts;
  }
  facts.seconds = seconds_of(media);
  if (picture != nullptr) facts.frames = frames_of(*picture, facts.seconds);
  return facts;
}

}  // namespace hpcbatch
