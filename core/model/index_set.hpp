// A set of array indices kept as ranges: an array of a million costs what its gaps cost, and a
// single range no allocation.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace hpcbatch {

/// Both ends belong to the range.
struct IndexRange {
  std::uint32_t first{0};
  std::uint32_t last{0};
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// Sorted, disjoint, not touching ranges.
class IndexSet {
 public:
  IndexSet() = default;
  IndexSet(const IndexSet& other);
  IndexSet& operator=(const IndexSet& other);
  IndexSet(IndexSet&& other) noexcept;
  IndexSet& operator=(IndexSet&& other) noexcept;
  ~IndexSet() = default;
  IndexSet(IndexRange range) { add(range); }  // NOLINT: a range is a set
  /// In any order; they may overlap.
  static IndexSet of(std::vector<IndexRange> ranges);

  void add(IndexRange range);
  void add(std::uint32_t index) { add(IndexRange{index, index}); }
  void add(const IndexSet& other);
  void remove(IndexRange range);
  void remove(std::uint32_t index) { remove(IndexRange{index, index}); }
  void remove(const IndexSet& other);
  [[nodiscard]] IndexSet intersection(const IndexSet& other) const;

  bool contains(std::uint32_t index) const;
  bool empty() const { return !many_ && one_ == kNone; }
  std::uint64_t size() const;
  /// Takes the lowest index out; the set may not be empty.
  std::uint32_t pop_first();
  /// The highest first; until the set is changed or moved.
  std::span<const IndexRange> ranges() const;
  friend bool operator==(const IndexSet& a, const IndexSet& b);

 private:
  struct Many {
    // Kept back to front, lowest range last, so that pop_first costs nothing.
    std::vector<IndexRange> ranges;
    std::uint64_t size{0};

    /// `range` ends no higher than the lowest range that is there.
    void append(IndexRange range);
    void add(IndexRange range);
    void remove(IndexRange range);
  };
  explicit IndexSet(Many many);
  /// Room for more than one range.
  Many& many();

  static constexpr IndexRange kNone{1, 0};
  IndexRange one_ = kNone;
  // Once there it stays until the set is empty: what has had gaps will have them again.
  std::unique_ptr<Many> many_;
};

/// `1-100`, `1-100:5`, `3,7-9`; an index is at most 4,294,967,294, all stepped ranges together
/// have at most a million.  No value where the text is none of these.
std::optional<IndexSet> parse_index_set(std::string_view text);
std::string to_string(const IndexSet& set);

}  // namespace hpcbatch
