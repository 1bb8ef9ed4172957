#include "tools/tool_resources.hpp"

#include "documents/texts.hpp"
#include "model/quantities.hpp"
#include "model/site.hpp"

#include <fmt/format.h>
#include <muParser.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <deque>
#include <optional>
#include <stdexcept>
#include <string_view>

namespace hpcbatch {

// Units are rewritten into plain numbers here, because muparser cannot tell `10m` from `10 m`; the
// arithmetic is its.

namespace {

constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kNameLetters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789.";
const std::vector<std::string> kFunctions{"min", "max", "ceil", "floor", "round"};

bool is_in(std::string_view set, char c) {
  return set.find(c) != std::string_view::npos;
}

/// Those of sizes are capital letters: `m` is minutes.
std::optional<double> factor_of(std::string_view unit) {
  if (const auto seconds = seconds_in(unit)) return seconds;
  if (unit.empty() || unit.front() < 'A' || unit.front() > 'Z' || unit == "B") return std::nullopt;
  return bytes_in(unit);
}

/// Reads the source from left to right; what it takes is what it has understood.
class Scanner {
 public:
  explicit Scanner(std::string_view source) : rest_(source) {}

  bool at_end() const { return rest_.empty(); }
  std::string_view rest() const { return rest_; }
  char next() const { return rest_.front(); }
  char take() {
    const char c = rest_.front();
    rest_.remove_prefix(1);
    return c;
  }
  std::string_view take_while(std::string_view set) {
    std::size_t length = 0;
    while (length < rest_.size() && is_in(set, rest_[length])) ++length;
    const std::string_view word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return word;
  }

  /// `2G`, `1.5`, `1h30m`.
  double take_amount() {
    double sum = 0;
    while (true) {
      double value = 0;
      const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value,
                                                 std::chars_format::fixed);
      if (error != std::errc{}) throw std::invalid_argument("a number cannot be read");
      rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
      const std::string_view unit = take_while(kLetters);
      if (unit.empty()) return sum + value;
      const auto factor = factor_of(unit);
      if (!factor) {
        throw std::invalid_argument(fmt::format(
            "'{}' is no unit; units are K, M, G, T of bytes and ms, s, m, h, d of time", unit));
      }
      sum += value * *factor;
      if (at_end() || !is_in(kDigits, next())) return sum;
    }
  }

 private:
  std::string_view rest_;
};

double smallest(const double* values, int count) {
  return *std::min_element(values, values + count);
}
double largest(const double* values, int count) {
  return *std::max_element(values, values + count);
}
double round_up(double value) {
  return std::ceil(value);
}
double round_down(double value) {
  return std::floor(value);
}
double round_off(double value) {
  return std::round(value);
}

}  // namespace

// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void check_units(std::string_view text, Measure measure) {
  std::string bare;      // a size that so far is a term of its own
  char before = '+';     // what stands before the next word
  bool is_open = false;  // a size has just been read behind a sign
  int depth = 0;
  const auto refuse_size = [](const std::string& amount) {
    throw std::invalid_argument(
        fmt::format("'{}' is a size and not a time; minutes are m, as in 10m", amount));
  };
  for (Scanner scanner(text); !scanner.at_end();) {
    const char c = scanner.next();
    if (is_in(" \t\n", c)) {
      scanner.take();
      continue;
    }
    const bool is_operator = !is_in(kDigits, c) && !is_in(kLetters, c) && c != '.';
    if (is_open && is_in("*/^", c)) bare.clear();
    is_open = false;
    if (is_operator) {
      scanner.take();
      if (c == '(') ++depth;
      if (c == ')') --depth;
      // What was read belongs to a condition, which may compare sizes.
      if (depth == 0 && is_in("<>=!&|?", c)) bare.clear();
    } else if (is_in(kLetters, c)) {
      scanner.take_while(kNameLetters);
    } else {
      const std::string_view rest = scanner.rest();
      scanner.take_amount();
      const std::string amount(rest.substr(0, rest.size() - scanner.rest().size()));
      const auto unit = amount.find_first_of(kLetters);
      const bool is_time = unit != std::string::npos && is_in("smhd", amount[unit]);
      if (is_time && measure != Measure::Seconds) {
        throw std::invalid_argument(
            fmt::format("'{}' is a time; sizes are written with K, M, G, T, as in 500M", amount));
      }
      if (measure == Measure::Seconds && unit != std::string::npos && !is_time && depth == 0 &&
          is_in("+-?:", before)) {
        if (!bare.empty()) refuse_size(bare);
        bare = amount;
        is_open = true;
      }
    }
    before = c;
  }
  if (!bare.empty()) refuse_size(bare);
}

struct Expression::Program {
  struct Variable {
    std::string name;
    double value{1};
  };
  std::deque<Variable> variables;  // muparser keeps their addresses
  mu::Parser parser;

  /// Those that may be used.
  struct Names {
    const std::vector<std::string>& known;
    const std::vector<std::string>& open;

    bool contain(const std::string& name) const {
      if (std::find(known.begin(), known.end(), name) != known.end()) return true;
      const auto dot = name.find('.');
      return dot != std::string::npos && dot + 1 < name.size() &&
             std::find(open.begin(), open.end(), name.substr(0, dot)) != open.end();
    }
  };

  void use(const std::string& name, const Names& names) {
    const auto is_it = [&](const Variable& variable) { return variable.name == name; };
    if (std::any_of(variables.begin(), variables.end(), is_it)) return;
    if (!names.contain(name)) {
      throw std::invalid_argument(fmt::format("'{}' is not known here{}", show_text(name, 40),
                                              spelling_hint(name, names.known)));
    }
    variables.push_back({name});
    parser.DefineVar(name, &variables.back().value);
  }

  std::string rewrite(const std::string& text, const Names& names) {
    std::string result;
    for (Scanner scanner(text); !scanner.at_end();) {
      const char c = scanner.next();
      if (is_in(kDigits, c) || c == '.') {
        result += fmt::format("({:.17g})", scanner.take_amount());
      } else if (is_in(kLetters, c)) {
        std::string name(scanner.take_while(kNameLetters));
        result += name;
        if (std::find(kFunctions.begin(), kFunctions.end(), name) == kFunctions.end())
          use(name, names);
      } else if (c == '=') {
        const std::string_view equals = scanner.take_while("=");
        const bool compares = equals.size() == 2 || (equals.size() == 1 && !result.empty() &&
                                                     is_in("<>!", result.back()));
        if (!compares) throw std::invalid_argument("'=' cannot stand here; a comparison is ==");
        result += equals;
      } else if (is_in("+-*/^(),<>!?:&| \t\n", c)) {
        result += scanner.take();
      } else {
        throw std::invalid_argument(
            fmt::format("'{}' cannot stand in an expression", show_text({&c, 1})));
      }
    }
    return result;
  }
};

Expression::Expression(const std::string& text, const std::vector<std::string>& names,
                       const std::vector<std::string>& open)
    : text_(text), program_(std::make_unique<Program>()) {
  mu::Parser& parser = program_->parser;
  try {
    parser.ClearFun();
    parser.ClearConst();
    parser.DefineNameChars("0123456789_.abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    parser.DefineFun("min", smallest);
    parser.DefineFun("max", largest);
    parser.DefineFun("ceil", round_up);
    parser.DefineFun("floor", round_down);
    parser.DefineFun("round", round_off);
    parser.SetExpr(program_->rewrite(text, {names, open}));
    parser.Eval();
  } catch (const mu::ParserError& e) {
    if (e.GetCode() == mu::ecMISSING_PARENS) throw std::invalid_argument("a ')' is missing");
    if (e.GetToken().empty()) throw std::invalid_argument("it ends too early or is empty");
    throw std::invalid_argument(
        fmt::format("it cannot be read at '{}'", show_text(e.GetToken(), 40)));
  }
}

Expression::Expression(Expression&&) noexcept = default;
Expression& Expression::operator=(Expression&&) noexcept = default;
Expression::~Expression() = default;

std::vector<std::string> Expression::names() const {
  std::vector<std::string> names;
  for (const auto& variable : program_->variables) names.push_back(variable.name);
  return names;
}

double Expression::evaluate(const std::map<std::string, double>& values) const {
  for (auto& variable : program_->variables) variable.value = values.at(variable.name);
  return program_->parser.Eval();
}

namespace {

constexpr double kMostBytes = 512.0 * 1024 * 1024 * 1024 * 1024;
constexpr double kMostSeconds = 366.0 * 24 * 3600;
constexpr double kMostCpus = 65536;
constexpr double kMostGpus = 1024;

ToolAmount parse_amount(const View& view, Measure measure, const ToolNames& names) {
  std::string text = view.non_empty_text();
  // The ways in which people write a constant, `HH:MM:SS` among them, mean here what they mean
  // everywhere.
  if (const auto time = measure == Measure::Seconds ? parse_duration(text) : std::nullopt) {
    text = fmt::format("{:.6f}", static_cast<double>(time->count()) / 1e6);
  } else if (const auto size = measure == Measure::Bytes ? parse_size(text) : std::nullopt) {
    text = fmt::format("{}", *size);
  }
  try {
    check_units(text, measure);
    return ToolAmount{Expression(text, names.known, names.open),
                      fmt::format("{}:{}: '{}'", view.file(), view.line(), view.name())};
  } catch (const std::invalid_argument& e) {
    view.fail(fmt::format("'{}' must be an amount or an expression, not '{}': {}", view.name(),
                          show_text(view.text(), 60), e.what()));
  }
}

Result<double> amount_of(const ToolAmount& amount, const std::map<std::string, double>& values,
                         double least, double most) {
  const double value = amount.expression.evaluate(values);
  if (!(value >= least && value <= most)) {
    return Error{
        Error::Kind::Rejected,
        fmt::format("{} comes out as {:g} for this request, expected {:g} to {:g}; look at its "
                    "expression: {}",
                    amount.place, value, least, most, amount.expression.text())};
  }
  return value;
}

}  // namespace

ToolResources parse_resources(const View& view, const ToolNames& names) {
  MapView map = view.map();
  ToolResources resources;
  if (const auto cpus = map.find("cpus"))
    resources.cpus = parse_amount(*cpus, Measure::Count, names);
  if (const auto memory = map.find("memory"))
    resources.memory = parse_amount(*memory, Measure::Bytes, names);
  if (const auto disk = map.find("disk"))
    resources.disk = parse_amount(*disk, Measure::Bytes, names);
  if (const auto time = map.find("time"))
    resources.time = parse_amount(*time, Measure::Seconds, names);
  if (const auto gpus = map.find("gpus")) {
    if (gpus->node().kind == Node::Kind::Map) {
      for (const View& kind : gpus->map().entries()) {
        if (!is_word(kind.name())) kind.fail("a kind of GPU must be a name such as a100");
        resources.gpus.emplace(kind.name(), parse_amount(kind, Measure::Count, names));
      }
    } else {
      resources.gpus.emplace("", parse_amount(*gpus, Measure::Count, names));
    }
  }
  if (const auto tags = map.find("tags")) {
    for (const View& tag : tags->list()) resources.tags.push_back(tag.tag());
    std::sort(resources.tags.begin(), resources.tags.end());
  }
  if (const auto limit = map.find("output_limit")) {
    const bool has_none = limit->node().kind == Node::Kind::Scalar && limit->node().text == "none";
    resources.output_limit = has_none ? kNoOutputLimit : limit->size();
    if (resources.output_limit < kLeastOutputLimit)
      limit->expected("a size of at least 1K, or none");
  }
  map.finish();
  return resources;
}

std::vector<const ToolAmount*> amounts(const ToolResources& resources) {
  std::vector<const ToolAmount*> all;
  for (const auto* amount :
       {&resources.cpus, &resources.memory, &resources.disk, &resources.time}) {
    if (*amount) all.push_back(&**amount);
  }
  for (const auto& [kind, amount] : resources.gpus) all.push_back(&amount);
  return all;
}

Result<Needs> evaluate(const ToolResources& resources,
                       const std::map<std::string, double>& values) {
  Needs needs;
  needs.amounts.set(kCpus, Amount::of(1));
  needs.tags = resources.tags;
  if (resources.cpus) {
    const auto cpus = amount_of(*resources.cpus, values, 0.01, kMostCpus);
    if (!cpus) return cpus.error();
    needs.amounts.set(kCpus, Amount::of_fraction(*cpus));
  }
  for (const auto& [name, amount] :
       {std::pair{kMemory, &resources.memory}, std::pair{kDisk, &resources.disk}}) {
    if (!*amount) continue;
    const auto bytes = amount_of(**amount, values, 0, kMostBytes);
    if (!bytes) return bytes.error();
    needs.amounts.set(name, Amount::of(static_cast<std::int64_t>(std::ceil(*bytes))));
  }
  if (resources.time) {
    const auto seconds = amount_of(*resources.time, values, 0.001, kMostSeconds);
    if (!seconds) return seconds.error();
    needs.time = Duration{static_cast<std::int64_t>(std::llround(*seconds * 1e6))};
  }
  for (const auto& [kind, amount] : resources.gpus) {
    const auto count = amount_of(amount, values, 0, kMostGpus);
    if (!count) return count.error();
    const std::string name = kind.empty() ? std::string(kAnyGpu) : std::string(kGpuPrefix) + kind;
    needs.amounts.set(name, Amount::of(static_cast<std::int64_t>(std::ceil(*count))));
  }
  return needs;
}

}  // namespace hpcbatch
