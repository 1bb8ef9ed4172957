#include "wire/encrypted_link.hpp"

#include "wire/checksum.hpp"

#include <sodium.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace hpcbatch::wire {
namespace {

void start_sodium() {
  if (::sodium_init() < 0) {
    std::fputs("hpcbatch: the cryptographic library cannot start: no source of random numbers\n",
               stderr);
    std::abort();
  }
}

}  // namespace

Key random_key() {
  start_sodium();
  Key key;
  ::randombytes_buf(key.data(), key.size());
  return key;
}

std::uint64_t random_number() {
  start_sodium();
  std::uint64_t number = 0;
  ::randombytes_buf(&number, sizeof number);
  return number;
}

Key pilot_key(const Key& allocation_key, std::uint32_t rank) {
  start_sodium();
  std::string text = "hpcbatch pilot key 1 ";
  text += std::to_string(rank);
  Key key;
  ::crypto_generichash(key.data(), key.size(), reinterpret_cast<const unsigned char*>(text.data()),
                       text.size(), allocation_key.data(), allocation_key.size());
  return key;
}

std::string fingerprint(std::string_view bytes) {
  start_sodium();
  Key digest;
  ::crypto_generichash(digest.data(), digest.size(),
                       reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), nullptr,
                       0);
  return to_hex(digest).substr(0, 16);
}

std::string to_hex(const Key& key) {
  std::string text(key.size() * 2 + 1, '\0');
  ::sodium_bin2hex(text.data(), text.size(), key.data(), key.size());
  text.pop_back();
  return text;
}

std::optional<Key> key_from_hex(std::string_view text) {
  Key key;
  std::size_t length = 0;
  if (text.size() != key.size() * 2) return std::nullopt;
  if (::sodium_hex2bin(key.data(), key.size(), text.data(), text.size(), nullptr, &length,
                       nullptr) != 0) {
    return std::nullopt;
  }
  if (length != key.size()) return std::nullopt;
  return key;
}

namespace {

constexpr std::string_view kLinkMagic = "hpcbatch";
constexpr std::size_t kPublicSize = crypto_scalarmult_BYTES;
constexpr std::size_t kNameSize = 16;
// magic, oldest, newest, name, rank, ephemeral key
constexpr std::size_t kHelloSize = 8 + 2 + 2 + kNameSize + 4 + kPublicSize;
// magic, chosen version or 0, oldest, newest, two zero bytes, ephemeral key
constexpr std::size_t kAnswerSize = 8 + 2 + 2 + 2 + 2 + kPublicSize;
constexpr std::size_t kHeaderSize = crypto_secretstream_xchacha20poly1305_HEADERBYTES;
constexpr std::size_t kSealSize = crypto_secretstream_xchacha20poly1305_ABYTES;
constexpr std::size_t kLengthSize = 4;
constexpr std::size_t kProofSize = kHeaderSize + kLengthSize + kSealSize;
constexpr std::uint64_t kRekeyAfter = std::uint64_t{64} << 20;

const unsigned char* raw(std::string_view bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* raw(std::string& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

bool is_name(std::string_view name) {
  if (name.empty() || name.size() > kLongestAllocationName) return false;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && (c < '0' || c > '9')) return false;
  }
  return true;
}

std::string range(Versions v) {
  if (v.oldest == v.newest) return "version " + std::to_string(v.newest);
  return "versions " + std::to_string(v.oldest) + " to " + std::to_string(v.newest);
}

std::string shown(const PilotName& name) {
  return name.allocation + "." + std::to_string(name.rank);
}

bool is_too_long(std::uint32_t sealed) {
  return sealed > kLargestMessage + kSealSize;
}

}  // namespace

/// awaiting hello  (engine) --hello-->  awaiting proof --proof--> established
/// awaiting answer (pilot)  --answer--> awaiting proof --proof--> established
/// Any wrong byte leads to broken, which nothing leaves.
struct Link::State {
  enum class Step { AwaitingHello, AwaitingAnswer, AwaitingProof, Established, Broken };

  Step step{Step::AwaitingHello};
  bool is_pilot{false};
  Versions versions;
  std::uint16_t version{0};
  PilotName pilot;
  Key key{};
  FindKey find_key;
  Key secret{};  // ephemeral
  std::string hello;
  std::string in;
  std::string out;
  std::string kept;  // sent before the link stood: lengths and messages
  crypto_secretstream_xchacha20poly1305_state sealing{};
  crypto_secretstream_xchacha20poly1305_state opening{};
  Key opening_key{};
  std::uint64_t since_rekey{0};
  bool is_unknown{false};  // the engine expects no such pilot
  std::optional<LinkFault> fault;

  ~State() {
    ::sodium_memzero(key.data(), key.size());
    ::sodium_memzero(secret.data(), secret.size());
    ::sodium_memzero(opening_key.data(), opening_key.size());
    ::sodium_memzero(&sealing, sizeof sealing);
    ::sodium_memzero(&opening, sizeof opening);
  }

  std::string new_public() {
    secret = random_key();
    std::string bytes(kPublicSize, '\0');
    ::crypto_scalarmult_base(raw(bytes), secret.data());
    return bytes;
  }

  Key direction_key(std::string_view label, const Key& shared, std::string_view answer) const {
    crypto_generichash_state hash;
    Key result;
    ::crypto_generichash_init(&hash, key.data(), key.size(), result.size());
    ::crypto_generichash_update(&hash, raw(label), label.size());
    ::crypto_generichash_update(&hash, shared.data(), shared.size());
    ::crypto_generichash_update(&hash, raw(hello), hello.size());
    ::crypto_generichash_update(&hash, raw(answer), answer.size());
    ::crypto_generichash_final(&hash, result.data(), result.size());
    return result;
  }

  bool agree(std::string_view their_public, std::string_view answer) {
    Key shared;
    const bool usable = ::crypto_scalarmult(shared.data(), secret.data(), raw(their_public)) == 0;
    ::sodium_memzero(secret.data(), secret.size());
    if (!usable) return false;
    Key to_engine = direction_key("hpcbatch wire: pilot to engine", shared, answer);
    Key to_pilot = direction_key("hpcbatch wire: engine to pilot", shared, answer);
    opening_key = is_pilot ? to_pilot : to_engine;
    sealing_key = is_pilot ? to_engine : to_pilot;
    ::sodium_memzero(shared.data(), shared.size());
    return true;
  }

  void seal(std::string_view message) {
    unsigned char tag = crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;
    since_rekey += message.size();
    if (since_rekey >= kRekeyAfter) {
      tag = crypto_secretstream_xchacha20poly1305_TAG_REKEY;
      since_rekey = 0;
    }
    const std::size_t sealed = message.size() + kSealSize;
    const std::size_t at = out.size();
    append_number(out, static_cast<std::uint32_t>(sealed));
    out.resize(at + kLengthSize + sealed);
    ::crypto_secretstream_xchacha20poly1305_push(&sealing, raw(out) + at + kLengthSize, nullptr,
                                                 raw(message), message.size(), raw(out) + at,
                                                 kLengthSize, tag);
  }

  void prove() {
    const std::size_t at = out.size();
    out.resize(at + kHeaderSize);
    ::crypto_secretstream_xchacha20poly1305_init_push(&sealing, raw(out) + at, sealing_key.data());
    ::sodium_memzero(sealing_key.data(), sealing_key.size());
    seal({});
  }

  bool open(std::string_view frame, std::string& message) {
    message.resize(frame.size() - kLengthSize - kSealSize);
    unsigned char tag = 0;
    return ::crypto_secretstream_xchacha20poly1305_pull(
               &opening, raw(message), nullptr, &tag, raw(frame) + kLengthSize,
               frame.size() - kLengthSize, raw(frame), kLengthSize) == 0;
  }

  Error refuse(LinkFault why, std::string text) {
    if (!fault) fault = why;
    return Error{Error::Kind::Rejected, std::move(text)};
  }

  hpcbatch::Result<void> on_hello(std::string_view bytes);
  hpcbatch::Result<void> on_answer(std::string_view bytes);
  hpcbatch::Result<void> on_proof(std::string_view bytes);
  hpcbatch::Result<void> take(std::string_view& rest, std::vector<std::string>& messages);

  Key sealing_key{};
};

hpcbatch::Result<void> Link::State::on_hello(std::string_view bytes) {
  const Versions theirs{number_at<std::uint16_t>(bytes, 8), number_at<std::uint16_t>(bytes, 10)};
  std::string_view name = bytes.substr(12, kNameSize);
  name = name.substr(0, name.find('\0'));
  if (!is_name(name))
    return refuse(LinkFault::Hello, "a peer gave a name that no allocation can have");
  pilot = {std::string(name), number_at<std::uint32_t>(bytes, 12 + kNameSize)};
  const std::uint16_t common = std::min(theirs.newest, versions.newest);
  const bool speakable = common >= theirs.oldest && common >= versions.oldest;
  hello = bytes;
  std::string answer(kLinkMagic);
  append_number(answer, speakable ? common : std::uint16_t{0});
  append_number(answer, versions.oldest);
  append_number(answer, versions.newest);
  append_number(answer, std::uint16_t{0});
  answer += new_public();
  out += answer;
  if (!speakable) {
    return refuse(LinkFault::Version, "pilot " + shown(pilot) + " speaks " + range(theirs) +
                                          " of the wire, this engine " + range(versions) +
                                          ": one of them has to be replaced");
  }
  version = common;
  // A pilot that nobody knows gets a key that nobody has: it learns no more than from a wrong key.
  const Key unknown = random_key();
  const std::optional<Key> found = find_key(pilot);
  key = found ? *found : unknown;
  is_unknown = !found;
  if (!agree(bytes.substr(kHelloSize - kPublicSize), answer)) {
    return refuse(LinkFault::Hello, "a peer sent a key that cannot be used");
  }
  step = Step::AwaitingProof;
  return {};
}

hpcbatch::Result<void> Link::State::on_answer(std::string_view bytes) {
  if (!bytes.starts_with(kLinkMagic))
    return refuse(LinkFault::Hello, "what answered is not an engine of hpcbatch");
  const auto chosen = number_at<std::uint16_t>(bytes, 8);
  const Versions theirs{number_at<std::uint16_t>(bytes, 10), number_at<std::uint16_t>(bytes, 12)};
  if (chosen < versions.oldest || chosen > versions.newest) {
    return refuse(LinkFault::Version, "the engine speaks " + range(theirs) +
                                          " of the wire, this pilot " + range(versions) +
                                          ": one of them has to be replaced");
  }
  version = chosen;
  if (!agree(bytes.substr(kAnswerSize - kPublicSize), bytes)) {
    return refuse(LinkFault::Hello, "the engine sent a key that cannot be used");
  }
  prove();
  step = Step::AwaitingProof;
  return {};
}

hpcbatch::Result<void> Link::State::on_proof(std::string_view bytes) {
  std::string nothing;
  const std::string_view frame = bytes.substr(kHeaderSize);
  const bool proved = number_at<std::uint32_t>(frame, 0) == kSealSize &&
                      ::crypto_secretstream_xchacha20poly1305_init_pull(&opening, raw(bytes),
                                                                        opening_key.data()) == 0 &&
                      open(frame, nothing);
  if (!proved) {
    return refuse(is_unknown ? LinkFault::UnknownPilot : LinkFault::Proof,
                  is_pilot
                      ? std::string("what answered did not prove that it is this pilot's engine")
                      : "a peer that calls itself pilot " + shown(pilot) +
                            " did not prove that it has that pilot's key");
  }
  ::sodium_memzero(opening_key.data(), opening_key.size());
  if (!is_pilot) prove();
  step = Step::Established;
  std::string_view waiting = kept;
  while (!waiting.empty()) {
    const auto length = number_at<std::uint32_t>(waiting, 0);
    seal(waiting.substr(kLengthSize, length));
    waiting.remove_prefix(kLengthSize + length);
  }
  kept.clear();
  kept.shrink_to_fit();
  return {};
}

/// Takes as much as is complete off the front of `rest`.
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
hpcbatch::Result<void> Link::State::take(std::string_view& rest,
                                         std::vector<std::string>& messages) {
  for (;;) {
    std::size_t wanted = 0;
    hpcbatch::Result<void> done;
    switch (step) {
      case Step::AwaitingHello:
        if (const auto begin = rest.substr(0, kLinkMagic.size()); !kLinkMagic.starts_with(begin))
          return refuse(LinkFault::Hello, "a peer did not speak the wire of hpcbatch");
        wanted = kHelloSize;
        if (rest.size() < wanted) return {};
        done = on_hello(rest.substr(0, wanted));
        break;
      case Step::AwaitingAnswer:
        wanted = kAnswerSize;
        if (rest.size() < wanted) return {};
        done = on_answer(rest.substr(0, wanted));
        break;
      case Step::AwaitingProof:
        if (rest.size() >= kHeaderSize + kLengthSize) {
          const auto sealed = number_at<std::uint32_t>(rest, kHeaderSize);
          if (is_too_long(sealed)) {
            return refuse(LinkFault::Length, "a peer that calls itself pilot " + shown(pilot) +
                                                 " announced a first frame of " +
                                                 std::to_string(sealed) + " bytes");
          }
        }
        wanted = kProofSize;
        if (rest.size() < wanted) return {};
        done = on_proof(rest.substr(0, wanted));
        break;
      case Step::Established: {
        if (rest.size() < kLengthSize) return {};
        const auto sealed = number_at<std::uint32_t>(rest, 0);
        if (is_too_long(sealed) || sealed < kSealSize) {
          return refuse(is_too_long(sealed) ? LinkFault::Length : LinkFault::Frame,
                        "a frame on the link of pilot " + shown(pilot) +
                            " has an impossible length: " + std::to_string(sealed) + " bytes");
        }
        wanted = kLengthSize + sealed;
        if (rest.size() < wanted) return {};
        std::string message;
        if (!open(rest.substr(0, wanted), message)) {
          return refuse(LinkFault::Frame, "a frame on the link of pilot " + shown(pilot) +
                                              " was changed, repeated or left out on its way");
        }
        messages.push_back(std::move(message));
        break;
      }
      case Step::Broken:
        return Error{Error::Kind::Rejected, "the link is broken"};
    }
    if (!done) return done;
    rest.remove_prefix(wanted);
  }
}

Link::Link(std::unique_ptr<State> state) : state_(std::move(state)) {}
Link::Link(Link&&) noexcept = default;
Link& Link::operator=(Link&&) noexcept = default;
Link::~Link() = default;

Link Link::connecting(PilotName self, const Key& key, Versions versions) {
  auto state = std::make_unique<State>();
  state->is_pilot = true;
  state->step = State::Step::AwaitingAnswer;
  state->versions = versions;
  state->pilot = std::move(self);
  state->key = key;
  std::string& hello = state->hello;
  hello = kLinkMagic;
  append_number(hello, versions.oldest);
  append_number(hello, versions.newest);
  std::string name = state->pilot.allocation;
  name.resize(kNameSize, '\0');
  hello += name;
  append_number(hello, state->pilot.rank);
  hello += state->new_public();
  state->out = hello;
  return Link(std::move(state));
}

Link Link::accepting(FindKey find_key, Versions versions) {
  auto state = std::make_unique<State>();
  state->versions = versions;
  state->find_key = std::move(find_key);
  return Link(std::move(state));
}

std::string Link::take_output() {
  return std::exchange(state_->out, {});
}
bool Link::has_output() const {
  return !state_->out.empty();
}

hpcbatch::Result<std::vector<std::string>> Link::receive(std::string_view bytes) {
  std::vector<std::string> messages;
  State& s = *state_;
  const bool continued = !s.in.empty();
  if (continued) s.in.append(bytes);
  std::string_view rest = continued ? std::string_view(s.in) : bytes;
  const std::size_t all = rest.size();
  const auto done = s.take(rest, messages);
  if (!done) {
    s.step = State::Step::Broken;
    s.in.clear();
    return done.error();
  }
  if (continued) {
    s.in.erase(0, all - rest.size());
  } else {
    s.in.assign(rest);
  }
  if (s.in.empty() && s.in.capacity() > kLargestMessage / 16) s.in.shrink_to_fit();
  return messages;
}

void Link::send(std::string_view message) {
  if (message.size() > kLargestMessage) {
    std::fputs("hpcbatch: internal error: a message is larger than a frame may be\n", stderr);
    std::abort();
  }
  if (state_->step == State::Step::Broken) return;
  if (established()) {
    state_->seal(message);
  } else {
    append_number(state_->kept, static_cast<std::uint32_t>(message.size()));
    state_->kept += message;
  }
}

std::optional<LinkFault> Link::fault() const {
  return state_->fault;
}
bool Link::established() const {
  return state_->step == State::Step::Established;
}
const PilotName& Link::peer() const {
  return state_->pilot;
}
bool Link::names_a_pilot() const {
  return state_->step == State::Step::AwaitingProof && !state_->is_unknown;
}
std::uint16_t Link::version() const {
  return state_->version;
}

}  // namespace hpcbatch::wire
