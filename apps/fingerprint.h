// What a model is, as 128 bits: equal ones give equal bits for equal requests.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/thread_team.h"

namespace unisono::apps {

// "fp_" and 32 hexadecimal digits, of a file's bytes and of what else changes the numbers ("int8 f16"). Guards against
// mistakes, not against forgers. Fails with a sentence when the file can't be read.
Result<std::string> fingerprint(const std::string& path, std::string_view numerics, ThreadTeam& team);

}  // namespace unisono::apps
