// Boost.JSON, compiled into the one program that can load no library.
#include <boost/json/src.hpp>
