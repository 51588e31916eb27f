// gpt-oss answers in messages of several channels: analysis is reasoning, final is content, and a message to a function is
// a call.
#pragma once

#include "serve/answer_parser.h"

namespace unisono::serve {

std::unique_ptr<AnswerParser> make_harmony_parser(const AnswerReading& reading);

}  // namespace unisono::serve
