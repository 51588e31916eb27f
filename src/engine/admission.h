// What a request must be to enter the engine: the checks of submit(), apart from the queue.
#pragma once

#include "base/result.h"
#include "engine/request.h"

namespace unisono::engine {

// Refused with a sentence and the field as subject: an empty prompt, one that leaves no room in the context (both numbers),
// ids outside the vocabulary, values outside their range, stop strings that are empty or begin inside a character.
Result<void> check_request(const Request& request, int vocab_size, int max_context);

}  // namespace unisono::engine
