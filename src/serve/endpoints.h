// What each route does, apart from HTTP.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "serve/context.h"
#include "serve/http_message.h"
#include "serve/reply.h"

namespace unisono::serve {

// Runs on a worker; answers through the reply, now or later.
using JsonEndpoint = void (*)(const ServeContext&, const Json& body, const std::shared_ptr<Reply>&);

void chat_completions(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply);
void completions(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply);
void responses(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply);
void messages(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply);
void count_tokens(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply);
void tokenize(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply);
void apply_template(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply);
void detokenize(const ServeContext& context, const Json& body, const std::shared_ptr<Reply>& reply);

std::string models_body(const ServeContext& context);
HttpResponse one_model(const ServeContext& context, const std::string& name);
std::string version_body(const ServeContext& context);

// The state of the engine's loop: 200 while it comes round or has nothing to do, 503 when one round takes longer than
// context.longest_step.
HttpResponse health(const ServeContext& context);

}  // namespace unisono::serve
