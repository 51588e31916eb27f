#include "engine/rows.h"

#include <algorithm>

#include "base/check.h"

namespace unisono::engine {

namespace {

// ranked: tell the token's rank, which takes a pass over the vocabulary.
TokenResult score(TokenId token, std::span<const float> logits, int n_top, bool ranked, decode::LogprobScratch& scratch,
                  std::vector<decode::Scored>& top) {
  const decode::LogSoftmax softmax(logits, scratch);
  const float own = logits[static_cast<size_t>(token)];
  TokenResult result{.id = token, .logprob = softmax.of(own)};
  if (ranked)
    result.rank = 1 + static_cast<int>(std::count_if(logits.begin(), logits.end(), [own](float logit) { return logit > own; }));
  if (n_top == 0) return result;
  decode::top_logprobs(logits, softmax, static_cast<size_t>(n_top), top);
  result.top.reserve(top.size());
  for (const decode::Scored& entry : top) result.top.push_back({entry.id, entry.score});
  return result;
}

// What must end a thought here, where the constraint has room for it.
std::optional<TokenId> due(const Job& job) {
  const auto token = job.thoughts ? job.thoughts->due() : std::nullopt;
  if (!token || job.allowed.empty()) return token;
  const auto id = static_cast<size_t>(*token);
  return (job.allowed[id / 64] >> (id % 64) & 1) != 0 ? token : std::nullopt;
}

}  // namespace

StepRows::StepRows(int token_budget, int max_running, int n_threads) : scratch_(static_cast<size_t>(n_threads)) {
  const auto n_rows = static_cast<size_t>(token_budget);
  tokens_.reserve(n_rows);
  logits_rows_.reserve(n_rows);
  rows_.reserve(n_rows);
  picks_.reserve(n_rows);
  sequences_.reserve(static_cast<size_t>(max_running));
}

const model::Batch& StepRows::build(std::span<const PlanItem> plan) {
  tokens_.clear();
  sequences_.clear();
  logits_rows_.clear();
  rows_.clear();
  for (const PlanItem& item : plan) {
    Job& job = static_cast<Job&>(*item.sequence);
    const auto first_row = static_cast<int32_t>(tokens_.size());
    const int end = job.n_computed + item.n_rows;
    sequences_.push_back({first_row, item.n_rows, job.n_computed, job.blocks, job.window_blocks});
    tokens_.insert(tokens_.end(), job.tokens.begin() + job.n_computed, job.tokens.begin() + end);
    // What was scored before a preemption isn't scored again.
    for (int position = std::max(job.n_computed, job.n_scored); position < std::min(end, job.score_until); position++) {
      logits_rows_.push_back(first_row + position - job.n_computed);
      rows_.push_back({&job, position, true});
    }
    if (end == job.n_tokens) {
      logits_rows_.push_back(first_row + item.n_rows - 1);
      rows_.push_back({&job, end - 1, false});
    }
  }
  batch_ = {.tokens = tokens_, .sequences = sequences_, .logits_rows = logits_rows_};
  return batch_;
}

void StepRows::pick(std::span<const float> logits, ThreadTeam& team) {
  picks_.clear();
  picks_.resize(rows_.size());
  if (rows_.empty()) return;
  check(logits.size() % rows_.size() == 0, "logits for each row that asked");
  const size_t vocab = logits.size() / rows_.size();
  const auto pick_range = [&](int64_t begin, int64_t end, Scratch& scratch) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); i++)
      pick_row(rows_[i], logits.subspan(i * vocab, vocab), scratch, picks_[i]);
  };
  const auto n = static_cast<int64_t>(rows_.size());
  if (n == 1) return pick_range(0, 1, scratch_[0]);
  team.run([&](Worker& worker) {
    const auto mine = worker.share(n);
    pick_range(mine.begin, mine.end, scratch_[static_cast<size_t>(worker.index())]);
  });
}

void StepRows::pick_row(const LogitsRow& row, std::span<const float> logits, Scratch& scratch, Pick& pick) {
  Job& job = *row.job;
  if (row.scores_prompt) {
    pick.token = job.tokens[static_cast<size_t>(row.position) + 1];
  } else {
    if (job.constraint) job.constraint->mask(job.allowed);  // a job has one choice in a step: no other thread is at it
    pick.token = due(job);
    if (!pick.token)
      pick.token = decode::sample({.logits = logits,
                                   .counts = job.counts ? &*job.counts : nullptr,
                                   .banned = job.output.banned(),
                                   .allowed = job.allowed,
                                   .position = static_cast<uint64_t>(row.position) + 1},
                                  job.request.sampling, scratch.sampler);
  }
  if (pick.token && (row.scores_prompt || job.request.logprobs))
    pick.result = score(*pick.token, logits, job.request.top_logprobs, row.scores_prompt, scratch.logprobs, scratch.top);
}

}  // namespace unisono::engine
