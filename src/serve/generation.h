// One client's running request: hands its choices to the engine, tells what comes back, and cancels what nobody waits for.
#pragma once

#include <memory>
#include <vector>

#include "serve/answer.h"
#include "serve/api_error.h"
#include "serve/context.h"
#include "serve/reply.h"
#include "serve/request_course.h"

namespace unisono::serve {

class Generation : public std::enable_shared_from_this<Generation> {
 public:
  struct Parts {
    std::vector<engine::Request> requests{};  // one for each candidate of each prompt, without on_delta
    std::unique_ptr<Answer> answer{};
    int per_prompt = 1;  // candidates
    bool stream = false;
    bool prompt_only = false;    // max_tokens is 0: the one token the engine makes isn't told
    std::string prompt_field{};  // what the API calls the prompt, for errors
  };
  // From any thread; returns at once. The context must outlive the engine's work on it.
  static void start(const ServeContext& context, std::shared_ptr<Reply> reply, Parts parts);

 private:
  Generation(const ServeContext& context, std::shared_ptr<Reply> reply, Parts parts);

  // All on the I/O thread.
  void submit();
  void take(size_t choice, engine::Delta&& delta);
  void complete();
  void fail(const ApiError& error);
  void cancel();
  void tell(size_t choice, engine::Delta&& delta);
  ApiError refusal(const Error& error) const;

  const ServeContext& context_;
  std::shared_ptr<Reply> reply_;
  Parts parts_;
  RequestCourse course_;
  std::vector<engine::RequestId> ids_{};
  engine::Usage usage_{};
  size_t unfinished_ = 0;
  bool streaming_ = false;
  bool over_ = false;
};

}  // namespace unisono::serve
