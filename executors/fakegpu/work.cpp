#include "fakegpu/work.hpp"

#include <algorithm>
#include <sstream>
#include <stdexcept>

namespace hpcbatch::fakegpu {

CostTable read_costs(std::istream& text) {
  CostTable table;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::string of, kind;
    if (!(words >> of)) continue;
    Cost cost;
    std::uint64_t mebibytes = 0;
    if (!(words >> kind >> cost.seconds >> mebibytes >> cost.busy) || cost.seconds < 0)
      throw std::invalid_argument("line " + std::to_string(number) +
                                  ": expected CLASS KIND SECONDS MIB BUSY-PERCENT");
    cost.memory = mebibytes << 20;
    table[{of, kind}] = cost;
  }
  return table;
}

double speed_beside(unsigned own, unsigned others) {
  constexpr double kTurns = 0.95;
  if (others == 0 || own == 0) return 1;
  const double wanted = own + others;
  return kTurns * std::min(1.0, 100 / wanted);
}

}  // namespace hpcbatch::fakegpu
