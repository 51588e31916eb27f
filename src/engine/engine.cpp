// The loop: take messages, plan, compute, pick, deliver. What happens in each is its own file's business; this one owns the
// thread, the mailbox and the jobs.
#include "engine/engine.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/check.h"
#include "base/thread_team.h"
#include "engine/admission.h"
#include "engine/job.h"
#include "engine/rows.h"
#include "engine/scheduler.h"
#include "engine/window_blocks.h"
#include "model/kv_store.h"
#include "model/model.h"
#include "text/tokenizer.h"

namespace unisono::engine {

namespace {

double seconds(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

// Of the queue and the prompt, until `now` where they last.
Timings timings_of(const Job& job, Clock::time_point now) {
  const bool answered = job.output.n_tokens() > 0;
  return {.queue_s = seconds(job.submitted, job.has_started ? job.started : now),
          .prefill_s = job.has_started ? seconds(job.started, answered ? job.first_token : now) : 0,
          .decode_s = answered ? seconds(job.first_token, now) : 0};
}

// Whether all that could come next is banned.
bool bans_leave_none(const Job& job, int vocab_size) {
  const auto banned = job.output.banned();
  if (!job.constraint) return banned.size() == static_cast<size_t>(vocab_size);
  const auto is_allowed = [&](TokenId id) { return (job.allowed[static_cast<size_t>(id) / 64] >> (id % 64) & 1) != 0; };
  int64_t n_allowed = 0;
  for (const uint64_t word : job.allowed) n_allowed += std::popcount(word);
  return n_allowed > 0 && std::ranges::count_if(banned, is_allowed) == n_allowed;
}

EngineOptions completed(EngineOptions options, const model::Hparams& hparams) {
  const int limit = hparams.context_length;
  if (options.max_context <= 0 || options.max_context > limit) options.max_context = limit;
  if (options.n_blocks <= 0) options.n_blocks = blocks_for(options.max_context);
  const int64_t positions = int64_t{options.n_blocks} * model::kBlockTokens;
  options.max_context = static_cast<int>(std::min<int64_t>(options.max_context, positions));
  options.token_budget = std::max(options.token_budget, 1);
  options.max_running = std::clamp(options.max_running, 1, options.token_budget);
  options.max_waiting = std::max(options.max_waiting, 1);
  const int window = hparams.window;
  const bool given = options.n_window_blocks > 0;
  if (!WindowBlocks::useful(hparams, given ? limit : options.max_context)) {
    options.n_window_blocks = 0;
  } else {
    if (!given)
      options.n_window_blocks =
          WindowBlocks::good_number(options.n_blocks, window, options.max_context, options.token_budget);
    options.n_window_blocks = std::max(options.n_window_blocks, WindowBlocks::least_blocks(window));
  }
  return options;
}

model::KvStore make_kv(const EngineOptions& options, const model::Hparams& h) {
  if (options.n_window_blocks == 0) return {options.kv_type, h.n_layers, h.n_kv_heads, h.head_dim, options.n_blocks};
  return {options.kv_type, h.windowed, h.n_kv_heads, h.head_dim, options.n_blocks, options.n_window_blocks};
}

std::optional<WindowBlocks> make_window(const EngineOptions& options, const model::Hparams& h) {
  if (options.n_window_blocks == 0) return {};
  return WindowBlocks(options.n_window_blocks, options.n_blocks, h.window, options.token_budget);
}

}  // namespace

struct Engine::Impl {
  Impl(model::Model& m, const text::Tokenizer& t, ThreadTeam& team, const EngineOptions& o)
      : model(m),
        tokenizer(t),
        team(team),
        options(completed(o, m.hparams())),
        kv(make_kv(options, m.hparams())),
        pool(options.n_blocks),
        index(options.prefix_cache ? options.n_blocks : 0),
        window(make_window(options, m.hparams())),
        scheduler(pool,
                  {.token_budget = options.token_budget,
                   .max_running = options.max_running,
                   .attention_unit = m.attention_unit()},
                  options.prefix_cache ? &index : nullptr, window ? &*window : nullptr),
        rows(options.token_budget, options.max_running, team.size()) {
    kv.interleave(team.nodes());
    publish();
    thread = std::thread([this] { loop(); });
  }

  Result<RequestId> submit(Request request);
  void cancel(RequestId id);
  void audit();
  void stop();

  // Below: the engine thread's only.
  void loop();
  bool take_messages();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  void enter(std::unique_ptr<Job> job);
  void end_cancelled();
  void end_overdue();
  void step();
  void note_start(std::span<const PlanItem> plan);
  void deliver();
  void deliver_token(Job& job, Pick& pick);
  void end_without_token(Job& job);
  void leave(Job& job, FinishReason reason, Error error = {});
  void send(Job& job, Delta&& delta);
  void publish();
  void audit_here() const;

  model::Model& model;
  const text::Tokenizer& tokenizer;
  ThreadTeam& team;
  const EngineOptions options;
  model::KvStore kv;
  BlockPool pool;
  PrefixIndex index;
  std::optional<WindowBlocks> window;  // where some layers have blocks of their own
  Scheduler scheduler;
  StepRows rows;
  std::unordered_map<RequestId, std::unique_ptr<Job>> jobs{};
  std::vector<std::unique_ptr<Job>> entering{};  // taken from the mailbox, as are the cancellations
  std::vector<RequestId> leaving{};
  Clock::time_point next_deadline = Clock::time_point::max();  // none of the jobs' is before
  uint64_t steps = 0, n_rows = 0;

  // The mailbox, under its mutex.
  std::mutex mutex{};
  std::condition_variable wake{}, audited{};
  std::vector<std::unique_ptr<Job>> submissions{};
  std::vector<RequestId> cancellations{};
  uint64_t audits_wanted = 0, audits_done = 0;
  RequestId next_id = 1;
  bool stopping = false;

  std::atomic<int> queued{0};  // submitted and in no step yet
  std::atomic<int> running_now{0}, waiting_now{0}, blocks_free_now{0}, window_blocks_free_now{0};
  std::atomic<uint64_t> steps_now{0}, rows_now{0}, preemptions_now{0}, prefix_queries_now{0}, prefix_hits_now{0};
  std::atomic<Clock::time_point> came_round{Clock::time_point::max()};  // max: waits for something to do
  StepTimes step_times{};
  std::thread thread{};
};

Result<RequestId> Engine::Impl::submit(Request request) {
  if (auto checked = check_request(request, model.hparams().vocab_size, options.max_context); !checked)
    return checked.error();
  RequestId id = 0;
  {
    std::lock_guard lock(mutex);
    if (queued.load() >= options.max_waiting)
      return Error{.message = "The queue is full: " + std::to_string(options.max_waiting) +
                              " requests are waiting; try again later.",
                   .subject = "queue"};
    queued++;
    id = next_id++;
  }
  auto job = std::make_unique<Job>(id, std::move(request), tokenizer, options.end_tokens, options.max_context);
  job->submitted = Clock::now();
  {
    std::lock_guard lock(mutex);
    submissions.push_back(std::move(job));
  }
  wake.notify_one();
  return id;
}

void Engine::Impl::cancel(RequestId id) {
  {
    std::lock_guard lock(mutex);
    cancellations.push_back(id);
  }
  wake.notify_one();
}

void Engine::Impl::audit() {
  std::unique_lock lock(mutex);
  const uint64_t mine = ++audits_wanted;
  wake.notify_one();
  audited.wait(lock, [&] { return audits_done >= mine; });
}

void Engine::Impl::stop() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
  }
  wake.notify_one();
  thread.join();
}

void Engine::Impl::loop() {
  FlushDenormals flushed;
  while (take_messages()) step();
  while (!jobs.empty()) leave(*jobs.begin()->second, FinishReason::cancelled);
}

// False: the engine is being destroyed.
bool Engine::Impl::take_messages() {
  uint64_t audits = 0;
  bool stop = false;
  {
    std::unique_lock lock(mutex);
    wait_for_work(lock);
    entering.swap(submissions);
    waiting_now += static_cast<int>(entering.size());
    leaving.swap(cancellations);
    audits = audits_wanted;
    stop = stopping;
  }
  for (auto& job : entering) enter(std::move(job));
  entering.clear();
  end_cancelled();
  end_overdue();
  if (audits > audits_done) {
    audit_here();
    std::lock_guard lock(mutex);
    audits_done = audits;
    audited.notify_all();
  }
  return !stop;
}

void Engine::Impl::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const auto is_work = [&] {
    return stopping || !jobs.empty() || !submissions.empty() || !cancellations.empty() || audits_wanted > audits_done;
  };
  if (!is_work()) {
    came_round = Clock::time_point::max();
    wake.wait(lock, is_work);
  }
  came_round = Clock::now();
}

void Engine::Impl::enter(std::unique_ptr<Job> job) {
  scheduler.add(*job);
  if (job->request.deadline) next_deadline = std::min(next_deadline, *job->request.deadline);
  const RequestId id = job->id;
  jobs.emplace(id, std::move(job));
}

void Engine::Impl::end_cancelled() {
  for (const RequestId id : leaving)
    if (const auto found = jobs.find(id); found != jobs.end()) leave(*found->second, FinishReason::cancelled);
  leaving.clear();
}

void Engine::Impl::end_overdue() {
  if (next_deadline == Clock::time_point::max()) return;
  const auto now = Clock::now();
  if (now < next_deadline) return;
  next_deadline = Clock::time_point::max();
  for (const auto& [id, job] : jobs) {
    const auto deadline = job->request.deadline.value_or(Clock::time_point::max());
    if (deadline <= now) {
      leaving.push_back(id);
    } else {
      next_deadline = std::min(next_deadline, deadline);
    }
  }
  for (const RequestId id : leaving) leave(*jobs.at(id), FinishReason::deadline);
  leaving.clear();
}

void Engine::Impl::step() {
  const auto plan = scheduler.plan();
  check(!plan.empty() || jobs.empty(), "while there are jobs, one of them advances");
  if (!plan.empty()) {
    note_start(plan);
    publish();  // a step may last for seconds
    const model::Batch& batch = rows.build(plan);
    const auto begun = Clock::now();
    rows.pick(model.forward(batch, kv, team), team);
    const auto picked = Clock::now();
    scheduler.commit();
    steps++;
    n_rows += batch.tokens.size();
    deliver();
    step_times.add(seconds(came_round.load(), Clock::now()), seconds(begun, picked));
  }
  publish();
}

void Engine::Impl::note_start(std::span<const PlanItem> plan) {
  for (const PlanItem& item : plan) {
    Job& job = static_cast<Job&>(*item.sequence);
    if (job.has_started) continue;
    job.has_started = true;
    job.started = Clock::now();
    queued--;
  }
}

// A job's choice is its last row, so a job that ends here isn't met again.
void Engine::Impl::deliver() {
  for (size_t i = 0; i < rows.rows().size(); i++) {
    const LogitsRow& row = rows.rows()[i];
    Pick& pick = rows.picks()[i];
    if (row.scores_prompt) {
      row.job->prompt_results.push_back(std::move(pick.result));
      row.job->n_scored++;
    } else if (pick.token) {
      deliver_token(*row.job, pick);
    } else {
      end_without_token(*row.job);
    }
  }
}

void Engine::Impl::deliver_token(Job& job, Pick& pick) {
  if (job.output.n_tokens() == 0) job.first_token = Clock::now();
  job.append(*pick.token);
  if (job.thoughts) job.thoughts->push(*pick.token);
  Delta delta;
  job.output.push(*pick.token, delta);
  if (job.constraint && !delta.finish) {
    check(job.constraint->accept(*pick.token), "a constraint takes what its mask allows");
    if (job.constraint->ended() || job.constraint->must_end()) job.output.end(FinishReason::complete, delta);
  }
  if (job.request.logprobs) delta.tokens.push_back(std::move(pick.result));
  send(job, std::move(delta));
}

void Engine::Impl::end_without_token(Job& job) {
  if (!bans_leave_none(job, model.hparams().vocab_size))
    return leave(job, FinishReason::error,
                 {job.constraint ? "No token can be chosen: the constraint and the model leave none."
                                 : "No token can be chosen: the model's output holds no usable number."});
  // As wherever nothing could follow.
  if (job.constraint && job.constraint->may_end()) return leave(job, FinishReason::complete);
  leave(job, FinishReason::error,
        {.message = "No token can be chosen: before 'min_tokens' no end token may come, and nothing else can.",
         .subject = "min_tokens"});
}

void Engine::Impl::leave(Job& job, FinishReason reason, Error error) {
  Delta delta;
  job.output.end(reason, delta);
  delta.error = std::move(error);
  send(job, std::move(delta));
}

// Completes the delta and calls the client. After the last one the job is gone, its blocks are free.
void Engine::Impl::send(Job& job, Delta&& delta) {
  const auto n_prompt = static_cast<int>(job.request.prompt.size());
  const auto now = Clock::now();
  delta.made = now;
  delta.timings = timings_of(job, now);
  delta.usage = {
      .prompt_tokens = n_prompt, .completion_tokens = job.output.n_tokens(), .cached_tokens = job.n_cached.value_or(0)};
  const bool prompt_scored = job.request.prompt_logprobs && job.n_scored == n_prompt - 1;
  if (!job.has_answered && prompt_scored) {
    delta.prompt = std::move(job.prompt_results);
    job.score_until = 0;
  }
  const bool worth_sending = delta.finish || !delta.text.empty() || !delta.tokens.empty() || !delta.prompt.empty();
  if (!delta.finish) {
    if (worth_sending) job.has_answered = true;
    if (worth_sending && job.request.on_delta) job.request.on_delta(std::move(delta));
    return;
  }
  if (!job.has_started) queued--;
  scheduler.remove(job);
  const auto ended = jobs.extract(job.id);
  publish();
  if (job.request.on_delta) job.request.on_delta(std::move(delta));
}

void Engine::Impl::publish() {
  running_now = scheduler.n_running();
  waiting_now = scheduler.n_waiting();
  blocks_free_now = pool.n_free();
  if (window) window_blocks_free_now = window->n_free();
  steps_now = steps;
  rows_now = n_rows;
  preemptions_now = scheduler.n_preemptions();
  prefix_queries_now = scheduler.prefix_queries();
  prefix_hits_now = scheduler.prefix_hits();
}

void Engine::Impl::audit_here() const {
  scheduler.audit();
  check(static_cast<int>(jobs.size()) == scheduler.n_running() + scheduler.n_waiting(), "every job is running or waiting");
  check(!jobs.empty() || pool.n_free() == pool.n_blocks(), "without jobs all blocks are free");
  check(!jobs.empty() || !window || window->n_free() == window->n_blocks(), "without jobs all window blocks are free");
}

Engine::Engine(model::Model& model, const text::Tokenizer& tokenizer, ThreadTeam& team, const EngineOptions& options)
    : impl_(std::make_unique<Impl>(model, tokenizer, team, options)) {}

Engine::~Engine() { impl_->stop(); }

Result<RequestId> Engine::submit(Request request) { return impl_->submit(std::move(request)); }

void Engine::cancel(RequestId id) { impl_->cancel(id); }

EngineState Engine::state() const {
  // Those who wait first: who comes from there into a step meanwhile isn't missed.
  int waiting = 0;
  {
    std::lock_guard lock(impl_->mutex);
    waiting = impl_->waiting_now + static_cast<int>(impl_->submissions.size());
  }
  return {.running = impl_->running_now,
          .waiting = waiting,
          .max_waiting = impl_->options.max_waiting,
          .blocks_free = impl_->blocks_free_now,
          .blocks_total = impl_->options.n_blocks,
          .window_blocks_free = impl_->window_blocks_free_now,
          .window_blocks_total = impl_->options.n_window_blocks,
          .block_tokens = model::kBlockTokens,
          .steps = impl_->steps_now,
          .rows = impl_->rows_now,
          .step_times = impl_->step_times.read(),
          .busy_s = std::max(0.0, seconds(impl_->came_round, Clock::now())),
          .preemptions = impl_->preemptions_now,
          .prefix_queries = impl_->prefix_queries_now,
          .prefix_hits = impl_->prefix_hits_now};
}

int Engine::max_context() const { return impl_->options.max_context; }

void Engine::audit() const { impl_->audit(); }

}  // namespace unisono::engine
