#include "serve/generation.h"

#include "serve/sse.h"

namespace unisono::serve {

Generation::Generation(const ServeContext& context, std::shared_ptr<Reply> reply, Parts parts)
    : context_(context),
      reply_(std::move(reply)),
      parts_(std::move(parts)),
      course_(context.metrics, reply_->origin(), parts_.requests.size()),
      unfinished_(parts_.requests.size()) {}

void Generation::start(const ServeContext& context, std::shared_ptr<Reply> reply, Parts parts) {
  const std::shared_ptr<Generation> generation(new Generation(context, std::move(reply), std::move(parts)));
  generation->reply_->post([generation] { generation->submit(); });
}

void Generation::submit() {
  if (reply_->gone()) return;
  reply_->on_cancel([self = shared_from_this()] { self->cancel(); });
  for (size_t choice = 0; choice < parts_.requests.size(); choice++) {
    engine::Request& request = parts_.requests[choice];
    request.owner = reply_->origin().owner;
    request.on_delta = [self = shared_from_this(), choice](engine::Delta&& delta) {
      auto moved = std::make_shared<engine::Delta>(std::move(delta));
      self->reply_->post([self, choice, moved] { self->take(choice, std::move(*moved)); });
    };
    const auto id = context_.engine.submit(std::move(request));
    if (!id) return fail(refusal(id.error()));
    ids_.push_back(*id);
  }
  course_.submitted();
  parts_.requests.clear();
  if (!parts_.stream) return;
  streaming_ = true;
  reply_->begin_stream({.content_type = kSseType,
                        .headers = {{"Cache-Control", "no-cache"}, {"X-Accel-Buffering", "no"}},
                        .body = parts_.answer->opening()});
}

void Generation::take(size_t choice, engine::Delta&& delta) {
  course_.came(choice, delta);
  if (over_) return;
  tell(choice, std::move(delta));
  course_.written(choice);
}

void Generation::tell(size_t choice, engine::Delta&& delta) {
  if (delta.finish == engine::FinishReason::error) {
    const Error& error = delta.error;
    if (!error.subject.empty()) return fail(refusal(error));
    return fail(
        {.status = 500, .message = "The server failed on this request: " + error.message, .code = "internal_error"});
  }
  // What was told already stays a part of an answer, which says why it ends here.
  if (delta.finish == engine::FinishReason::cancelled && delta.usage.completion_tokens == 0) {
    return fail({.status = 503, .message = "The server ended this request before it was complete.", .code = "cancelled"});
  }
  if (parts_.prompt_only) {
    delta.text.clear();
    delta.tokens.clear();
    delta.usage.completion_tokens = 0;
    if (delta.finish && delta.finish != engine::FinishReason::deadline) delta.finish = engine::FinishReason::length;
  }
  const int index = static_cast<int>(choice);
  if (streaming_) {
    reply_->write(parts_.answer->part(index, delta));
  } else {
    parts_.answer->collect(index, delta);
  }
  if (!delta.finish) return;
  usage_.completion_tokens += delta.usage.completion_tokens;
  if (index % parts_.per_prompt == 0) {
    usage_.prompt_tokens += delta.usage.prompt_tokens;
    usage_.cached_tokens += delta.usage.cached_tokens;
  }
  if (--unfinished_ == 0) complete();
}

void Generation::complete() {
  over_ = true;
  reply_->note(course_.notes());
  if (streaming_) {
    reply_->write(parts_.answer->closing(usage_));
    reply_->finish();
  } else {
    reply_->send({.body = parts_.answer->whole(usage_)});
  }
}

void Generation::fail(const ApiError& error) {
  cancel();
  if (streaming_) {
    reply_->write(parts_.answer->failure(error));
    reply_->finish();
  } else {
    reply_->send(parts_.answer->refusal(error));
  }
}

void Generation::cancel() {
  over_ = true;
  reply_->note(course_.notes());
  for (const engine::RequestId id : ids_) context_.engine.cancel(id);
}

ApiError Generation::refusal(const Error& error) const {
  if (error.subject == "queue") {
    const auto n_wanted = static_cast<int>(parts_.requests.size());
    const int most = context_.engine.state().max_waiting;
    if (n_wanted <= most) return {.status = 429, .message = error.message, .code = "rate_limit_exceeded"};
    return {.message = "The request asks for " + std::to_string(n_wanted) + " answers at once, but only " +
                       std::to_string(most) + " may wait here; ask for fewer.",
            .param = parts_.per_prompt > 1 ? "n" : parts_.prompt_field,
            .code = "invalid_value"};
  }
  return {.message = error.message,
          .param = error.subject == "prompt" ? parts_.prompt_field : error.subject,
          .code = "invalid_value"};
}

}  // namespace unisono::serve
