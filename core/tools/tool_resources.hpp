// The `resources:` of a tool's file: amounts, each a constant or an expression of the request.
#pragma once

#include "documents/view.hpp"
#include "hpcbatch/result.hpp"
#include "model/needs.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

// Amounts that depend on a request: `2G + 3 * input.size`, `10m + input.size / 1M * 2s`.

/// What the value of an expression is.
enum class Measure { Count, Bytes, Seconds };

/// Throws std::invalid_argument for a number whose unit cannot be meant: `500m`, which is minutes,
/// in a size, and `10M`, which is bytes, as a term of a time.  A size may be what a time divides
/// by.
void check_units(std::string_view text, Measure measure);

/// Arithmetic over named values: `+ - * / ^`, comparisons, `a ? b : c`, min, max, ceil, floor,
/// round.  A number may carry units: K M G T (powers of 1024; `KB`, `KiB` too) for bytes, `ms s m h
/// d` for seconds, joined as in `1h30m`. Not for sharing between threads.
class Expression {
 public:
  /// Throws std::invalid_argument with what was expected where the text is no expression or uses a
  /// name that is not among `names`, and no `NAME.WORD` with a NAME of `open`.
  Expression(const std::string& text, const std::vector<std::string>& names,
             const std::vector<std::string>& open = {});
  Expression(Expression&&) noexcept;
  Expression& operator=(Expression&&) noexcept;
  ~Expression();

  /// All names used must be in `values`.  The result may be any double, also infinite or not a
  /// number.
  double evaluate(const std::map<std::string, double>& values) const;
  const std::string& text() const { return text_; }
  /// Those that it uses.
  std::vector<std::string> names() const;

 private:
  struct Program;
  std::string text_;
  std::unique_ptr<Program> program_;
};

/// One amount with the place that says it, for messages.
struct ToolAmount {
  Expression expression;
  std::string place;  ///< `FILE:LINE: 'memory'`
};

struct ToolResources {
  std::optional<ToolAmount> cpus;
  std::optional<ToolAmount> memory;  ///< bytes
  std::optional<ToolAmount> disk;    ///< bytes
  std::uint64_t output_limit{0};     ///< bytes of each stream that are kept; 0: as the site says
  std::optional<ToolAmount> time;    ///< seconds
  std::map<std::string, ToolAmount> gpus;  ///< by kind; kind "" is any
  std::vector<std::string> tags;           ///< sorted
};

/// What an expression may use.
struct ToolNames {
  std::vector<std::string> known;
  std::vector<std::string> open;  ///< of these, also any `NAME.WORD`
};

/// Throws DocumentError.
ToolResources parse_resources(const View& view, const ToolNames& names);

std::vector<const ToolAmount*> amounts(const ToolResources& resources);

/// The needs of one request; without cpus it is one.  Refused where an amount comes out negative,
/// not a number, or beyond what any machine has.
Result<Needs> evaluate(const ToolResources& resources, const std::map<std::string, double>& values);

}  // namespace hpcbatch
