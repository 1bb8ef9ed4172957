#include "tables.hpp"

#include <algorithm>
#include <cmath>
#include <set>

namespace hpcbatch::xgboost {
namespace {

std::optional<std::string> fault_of_values(const FeatureTable& table) {
  if (table.values.size() % table.features.size() != 0)
    return "the table is no whole number of rows: " + std::to_string(table.values.size()) +
           " values in " + std::to_string(table.features.size()) + " columns";
  for (std::size_t at = 0; at < table.values.size(); ++at) {
    if (std::isinf(table.values[at]))
      return "column " + table.features[at % table.features.size()] + " of row " +
             std::to_string(at / table.features.size() + 1) + " is infinite";
  }
  return std::nullopt;
}

std::optional<std::string> fault_of_names(const std::vector<std::string>& features) {
  if (features.empty()) return "the table has no columns";
  for (const std::string& name : features) {
    if (name.empty() || name.find('\n') != std::string::npos)
      return "a column of the table has no name of one line";
  }
  const std::set<std::string> names(features.begin(), features.end());
  if (names.size() != features.size()) return "two columns of the table have one name";
  return std::nullopt;
}

template <class Vector>
std::optional<std::string> fault_of_length(const Vector& column, std::size_t rows,
                                           const char* what) {
  if (column.size() == rows) return std::nullopt;
  return "the table has " + std::to_string(rows) + " rows and " + std::to_string(column.size()) +
         " " + what;
}

/// Of the columns beside the inputs, which have the right lengths.
std::optional<std::string> fault_of_waits(const TrainingTable& table) {
  for (const double wait : table.waited) {
    if (!std::isfinite(wait) || wait < 0) return "a wait is no number of seconds from 0 on";
  }
  bool teaches = false;
  for (std::size_t row = 0; row < table.waited.size(); ++row) {
    const float weight = table.weights.empty() ? 1 : table.weights[row];
    if (!std::isfinite(weight) || weight < 0) return "a weight is no number from 0 on";
    const bool is_pending = !table.is_pending.empty() && table.is_pending[row] != 0;
    teaches = teaches || (weight > 0 && !is_pending);
  }
  if (!teaches) return "no row of the table has a weight and a wait that is over";
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fault_of(const TrainingTable& table) {
  if (auto fault = fault_of_names(table.inputs.features)) return fault;
  if (auto fault = fault_of_values(table.inputs)) return fault;
  const std::size_t rows = table.inputs.rows();
  if (rows == 0) return "the table has no rows";
  if (auto fault = fault_of_length(table.waited, rows, "waits")) return fault;
  if (!table.weights.empty())
    if (auto fault = fault_of_length(table.weights, rows, "weights")) return fault;
  if (!table.is_pending.empty())
    if (auto fault = fault_of_length(table.is_pending, rows, "marks of pending jobs")) return fault;
  return fault_of_waits(table);
}

std::optional<std::string> fault_of(const FeatureTable& table,
                                    const std::vector<std::string>& features) {
  if (table.features.size() != features.size())
    return "the model was trained with " + std::to_string(features.size()) +
           " columns and is asked with " + std::to_string(table.features.size());
  const auto [ours, asked] =
      std::mismatch(features.begin(), features.end(), table.features.begin());
  if (ours != features.end())
    return "the model was trained with column " + *ours + " where it is asked with " + *asked;
  return fault_of_values(table);
}

}  // namespace hpcbatch::xgboost
