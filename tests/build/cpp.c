// C++: the header is included inside no extern "C" of the user's, beside the standard library.
// lang: c++
#include <cstdint>
#include <string>
#define TL_STRATEGY_IMPLEMENTATION
#include "../../tl_strategy.h"

int main() { return std::to_string(tl_version()) != std::to_string(TL_VERSION); }
