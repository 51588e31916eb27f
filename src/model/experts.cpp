#include "model/experts.h"

#include <algorithm>
#include <span>

namespace unisono::model {

using kernels::Bf16Block;
using kernels::kBlock;
using kernels::kLanes;
using kernels::QuantBlock;

namespace {
// Rows that a product takes of what it gathers: more would leave the core's cache.
constexpr int kMostRows = 128;
// Whole experts are cut into this many units a worker, so that none waits long for the last; but not into fewer rows than
// make reading the weights worth while.
constexpr int kUnitsEach = 8, kLeastRows = 32;

template <class T>
T* at(Buffer& buffer, int64_t row, int64_t width) {
  T* all = buffer.as<T>().data();
  return all == nullptr ? nullptr : all + row * width;
}
template <class T>
const T* at(const Buffer& buffer, int64_t row, int64_t width) {
  const T* all = buffer.as<T>().data();
  return all == nullptr ? nullptr : all + row * width;
}
template <class T>
void grow(Buffer& buffer, int64_t n) {
  const size_t bytes = static_cast<size_t>(n) * sizeof(T);
  if (buffer.size() < bytes) buffer = Buffer(bytes);
}

// Takes the n largest probabilities, of equal ones the first, into `weights`, and whose they are into `experts`, in
// ascending order of these. Returns their sum, the largest first. n different ones even where some are no numbers.
float take_largest(std::span<float> probabilities, int n, int* experts, float* weights) {
  constexpr float kTaken = -1;
  float total = 0;
  for (int taken = 0; taken < n; taken++) {
    int best = -1;
    for (int i = 0; i < static_cast<int>(probabilities.size()); i++) {
      const float p = probabilities[static_cast<size_t>(i)];
      if (p != kTaken && (best < 0 || p > probabilities[static_cast<size_t>(best)])) best = i;
    }
    float& p = probabilities[static_cast<size_t>(best)];
    int to = taken;
    for (; to > 0 && experts[to - 1] > best; to--) {
      experts[to] = experts[to - 1];
      weights[to] = weights[to - 1];
    }
    experts[to] = best;
    weights[to] = p;
    total += p;
    p = kTaken;
  }
  return total;
}
}  // namespace

Experts::Experts(const Arch& arch, const Hparams& hparams, const Weights& weights, const kernels::Ops& ops)
    : h_(hparams),
      ops_(ops),
      kind_(gate_kind(arch.activation)) {
  if (h_.n_experts == 0) return;
  d_columns_ = (h_.d_model + kLanes - 1) / kLanes * kLanes;
  in_blocks_ = h_.d_model / kBlock;
  goes_to_ = h_.n_experts_used + (h_.shared_ff > 0 ? 1 : 0);
  gated_width_ = std::max(h_.d_ff, h_.shared_ff);
  gated_blocks_ = gated_width_ / kBlock;
  for (const Layer& layer : weights.layers) {
    score_columns_ = layer.router.columns();
    for (const Expert* e : {&layer.experts.front(), &layer.experts.back()}) {  // the others are like the first
      gate_columns_ = std::max(gate_columns_, e->gate_up.columns());
      const auto needs = [&](Activations kind) { return e->gate_up.needs(kind) || e->down.needs(kind); };
      int8_ = int8_ || needs(Activations::int8);
      bf16_ = bf16_ || needs(Activations::bf16);
      f32_ = f32_ || needs(Activations::f32);
    }
  }
  next_unit_ = std::make_unique<std::atomic<int>[]>(static_cast<size_t>(h_.n_layers));
}

void Experts::begin() {
  bytes_read_ = 0;
  for (int i = 0; h_.n_experts > 0 && i < h_.n_layers; i++) next_unit_[static_cast<size_t>(i)] = 0;
}

// Of a unit.
int Experts::most_rows(int rows, int workers, Way way) const {
  return way == Way::whole ? std::clamp(rows * goes_to_ / (kUnitsEach * workers), kLeastRows, kMostRows) : kMostRows;
}

void Experts::reserve(int rows, int workers, Way way) {
  if (h_.n_experts == 0) return;
  const int places = rows * goes_to_;
  groups_.resize(std::max(groups_.size(), static_cast<size_t>(workers)));
  for (Group& g : groups_) {
    const auto size = [](auto& list, int n) { list.resize(std::max(list.size(), static_cast<size_t>(n))); };
    g.units.reserve(static_cast<size_t>(std::min(h_.n_experts + 1, places) + places / most_rows(rows, workers, way)));
    size(g.row, places);
    size(g.place, places);
    size(g.next, h_.n_experts + 1);
    size(g.probabilities, h_.n_experts);
  }
  const int64_t own = way == Way::each ? int64_t{rows} * workers : rows, gathered = int64_t{workers} * kMostRows;
  const int64_t products = way == Way::whole ? gathered : places;
  const int64_t prepared = way == Way::each ? int64_t{places} * workers : products;
  grow<float>(scores_, int64_t{rows} * score_columns_);
  grow<int>(chosen_, own * goes_to_);
  grow<float>(weights_, own * goes_to_);
  grow<float>(gate_up_, products * gate_columns_);
  grow<float>(gated_, prepared * gated_width_);
  grow<float>(given_, int64_t{places} * d_columns_);
  if (int8_) {
    grow<QuantBlock>(in_int8_, own * in_blocks_);
    grow<QuantBlock>(gathered_int8_, gathered * in_blocks_);
    grow<QuantBlock>(gated_int8_, prepared * gated_blocks_);
  }
  if (bf16_) {
    grow<Bf16Block>(in_bf16_, own * in_blocks_);
    grow<Bf16Block>(gathered_bf16_, gathered * in_blocks_);
    grow<Bf16Block>(gated_bf16_, prepared * gated_blocks_);
  }
  if (f32_) grow<float>(gathered_f32_, gathered * h_.d_model);
}

void Experts::choose(int worker, int own, const float* scores, const float* in, const Layer& layer) {
  std::vector<float>& probabilities = groups_[static_cast<size_t>(worker)].probabilities;
  std::copy_n(scores, h_.n_experts, probabilities.data());
  ops_.softmax(probabilities.data(), h_.n_experts);
  const int n = h_.n_experts_used;
  int* experts = at<int>(chosen_, own, goes_to_);
  float* weights = at<float>(weights_, own, goes_to_);
  const float total = take_largest(probabilities, n, experts, weights);
  if (h_.renormalise)
    for (int j = 0; j < n; j++) weights[j] /= total;
  if (goes_to_ > n) {
    float sigmoid[2] = {scores[layer.router.first_column(1)], 0};  // as a soft-max of two
    ops_.softmax(sigmoid, 2);
    experts[n] = h_.n_experts;
    weights[n] = sigmoid[0];
  }
  const auto needs = [&](Activations kind) {
    return layer.experts.front().gate_up.needs(kind) || layer.experts.back().gate_up.needs(kind);
  };
  if (needs(Activations::int8)) ops_.quantise(in, h_.d_model, at<QuantBlock>(in_int8_, own, in_blocks_));
  if (needs(Activations::bf16)) ops_.round_bf16(in, h_.d_model, at<Bf16Block>(in_bf16_, own, in_blocks_));
}

// Each worker does it for itself, which takes less time than to meet.
void Experts::group(Worker& worker, const Rows& rows, const Layer& layer) {
  Group& g = groups_[static_cast<size_t>(worker.index())];
  const int n = rows.rows * goes_to_, most = most_rows(rows.rows, worker.count(), rows.way);
  const int* chosen = at<int>(chosen_, rows.first_own, goes_to_);
  std::fill(g.next.begin(), g.next.end(), 0);
  for (int i = 0; i < n; i++) g.next[static_cast<size_t>(chosen[i])]++;
  g.units.clear();
  g.chosen_units = 0;
  int place = 0;
  for (int e = 0; e < static_cast<int>(layer.experts.size()); e++) {
    int& next = g.next[static_cast<size_t>(e)];
    const int some = next;
    for (int i = 0; i < some; i += most) g.units.push_back({e, place + i, std::min(most, some - i)});
    if (e < h_.n_experts) g.chosen_units = static_cast<int>(g.units.size());
    next = place;
    place += some;
    const Expert& expert = layer.experts[static_cast<size_t>(e)];
    if (worker.index() == 0 && some > 0) bytes_read_ += expert.gate_up.bytes() + expert.down.bytes();
  }
  for (int i = 0; i < n; i++) {
    const int to = g.next[static_cast<size_t>(chosen[i])]++;
    g.place[static_cast<size_t>(i)] = to;
    g.row[static_cast<size_t>(to)] = i / goes_to_;
  }
}

void Experts::run(Worker& worker, PanelDeal::Hand& hand, const Layer& layer, int index, const Rows& rows,
                  const Linear& then) {
  group(worker, rows, layer);
  if (rows.way == Way::whole) {
    run_whole(worker, layer, index, rows);
  } else {
    run_dealt(worker, hand, layer, rows, then);
  }
  worker.barrier();
}

void Experts::sum(int worker, int row, int own, float* y) const {
  const int* places = groups_[static_cast<size_t>(worker)].place.data() + int64_t{row} * goes_to_;
  const float* weights = at<float>(weights_, own, goes_to_);
  std::fill(y, y + h_.d_model, 0.0f);
  for (int j = 0; j < goes_to_; j++) ops_.add_scaled(y, at<float>(given_, places[j], d_columns_), weights[j], h_.d_model);
}

// The panels of all units one after another, as those of one product: first of the chosen experts, which have as many each.
struct Experts::Panels {
  struct Found {
    const Unit& unit;
    const Linear& linear;
    int first;  // of the unit's panels
  };
  const Layer& layer;
  const Group& group;
  Linear Expert::*which;
  int of_chosen = (layer.experts.front().*which).panels(), of_shared = (layer.experts.back().*which).panels();
  int chosen = group.chosen_units * of_chosen;

  int all() const { return chosen + (static_cast<int>(group.units.size()) - group.chosen_units) * of_shared; }
  Found find(int panel) const {
    const bool shared = panel >= chosen;
    const int i = shared ? (panel - chosen) / of_shared : panel / of_chosen;
    const Unit& unit = group.units[static_cast<size_t>(shared ? group.chosen_units + i : i)];
    return {unit, layer.experts[static_cast<size_t>(unit.expert)].*which, shared ? chosen + i * of_shared : i * of_chosen};
  }
  kernels::Upcoming upcoming(int panel) const {
    if (panel >= all()) return {};
    const Found found = find(panel);
    return found.linear.upcoming(panel - found.first);
  }
};

template <class RowsOf>
void Experts::multiply(PanelDeal::Hand& hand, const Panels& panels, RowsOf rows_of, float* y, int64_t ldy,
                       kernels::Upcoming then) const {
  const int all = panels.all();
  hand.each_pair(all, [&](int panel, int end, int next) {
    for (int to = panel; panel < end; panel = to) {
      const auto [unit, linear, first] = panels.find(panel);
      to = std::min(end, first + linear.panels());
      const int following = to < end ? to : next;
      linear.multiply(ops_, rows_of(unit), 0, unit.rows, y + unit.first * ldy, ldy, panel - first, to - first,
                      following < all ? panels.upcoming(following) : then);
    }
  });
}

void Experts::run_dealt(Worker& worker, PanelDeal::Hand& hand, const Layer& layer, const Rows& rows, const Linear& then) {
  const Group& g = groups_[static_cast<size_t>(worker.index())];
  const Panels gate_ups{layer, g, &Expert::gate_up}, downs{layer, g, &Expert::down};
  const auto first_of = [&](int panels) { return hand.share(panels).first * PanelDeal::kPair; };
  multiply(
      hand, gate_ups, [&](const Unit& u) { return gather(worker.index(), u, rows); }, gate_up(0), gate_columns_,
      downs.upcoming(first_of(downs.all())));
  worker.barrier();
  const bool each = rows.way == Way::each;
  const int64_t places = int64_t{rows.rows} * goes_to_, chosen = int64_t{rows.rows} * h_.n_experts_used;
  const int64_t base = each ? worker.index() * places : 0;
  const auto mine = each ? Worker::Range{0, places} : worker.share(places);
  for (int64_t place = mine.begin; place < mine.end; place++)
    gate(place < chosen ? layer.experts.front() : layer.experts.back(), gate_up(place), gated_at(rows, base, place));
  if (!each) worker.barrier();
  multiply(
      hand, downs, [&](const Unit& u) { return gated(gated_at(rows, base, u.first)); }, given(0), d_columns_,
      then.upcoming(first_of(then.panels())));
}

void Experts::run_whole(Worker& worker, const Layer& layer, int index, const Rows& rows) {
  const Group& g = groups_[static_cast<size_t>(worker.index())];
  const int64_t base = int64_t{worker.index()} * kMostRows;
  const Gated to{base, base * gated_blocks_};
  const int n = static_cast<int>(g.units.size());
  for (int i; (i = next_unit_[static_cast<size_t>(index)].fetch_add(1)) < n;) {
    const Unit& u = g.units[static_cast<size_t>(i)];
    const Expert& e = layer.experts[static_cast<size_t>(u.expert)];
    e.gate_up.multiply(ops_, gather(worker.index(), u, rows), 0, u.rows, gate_up(base), gate_columns_, 0,
                       e.gate_up.panels(), e.down.upcoming(0));
    for (int r = 0; r < u.rows; r++) gate(e, gate_up(base + r), {to.row + r, to.block + r * (e.down.k() / kBlock)});
    e.down.multiply(ops_, gated(to), 0, u.rows, given(u.first), d_columns_, 0, e.down.panels(), {});
  }
}

// The inputs of the unit's rows side by side.
ActivationRows Experts::gather(int worker, const Unit& unit, const Rows& rows) {
  const int* row = groups_[static_cast<size_t>(worker)].row.data() + unit.first;
  const auto int8 = [&](int i) { return at<QuantBlock>(in_int8_, rows.first_own + row[i], in_blocks_); };
  const auto bf16 = [&](int i) { return at<Bf16Block>(in_bf16_, rows.first_own + row[i], in_blocks_); };
  const auto f32 = [&](int i) { return rows.in + row[i] * rows.stride; };
  if (unit.rows == 1) return {int8(0), bf16(0), f32(0), rows.stride};
  const int64_t base = int64_t{worker} * kMostRows;
  for (int i = 0; i < unit.rows; i++) {
    if (int8_) std::copy_n(int8(i), in_blocks_, at<QuantBlock>(gathered_int8_, base + i, in_blocks_));
    if (bf16_) std::copy_n(bf16(i), in_blocks_, at<Bf16Block>(gathered_bf16_, base + i, in_blocks_));
    if (f32_) std::copy_n(f32(i), h_.d_model, at<float>(gathered_f32_, base + i, h_.d_model));
  }
  return {at<QuantBlock>(gathered_int8_, base, in_blocks_), at<Bf16Block>(gathered_bf16_, base, in_blocks_),
          at<float>(gathered_f32_, base, h_.d_model), h_.d_model};
}

// The shared expert's blocks stand behind the room for those of all chosen ones.
Experts::Gated Experts::gated_at(const Rows& rows, int64_t base, int64_t place) const {
  const int64_t chosen = int64_t{rows.rows} * h_.n_experts_used;
  const int64_t block =
      place < chosen ? place * (h_.d_ff / kBlock) : chosen * gated_blocks_ + (place - chosen) * (h_.shared_ff / kBlock);
  return {base + place, base * gated_blocks_ + block};
}

// One row's gate and up into what its down product reads.
void Experts::gate(const Expert& expert, const float* gate_up, Gated to) {
  const int n = expert.down.k();
  float* out = at<float>(gated_, to.row, gated_width_);
  ops_.gate(kind_, gate_up, gate_up + expert.gate_up.first_column(1), out, n);
  if (expert.down.needs(Activations::int8)) ops_.quantise(out, n, at<QuantBlock>(gated_int8_, to.block, 1));
  if (expert.down.needs(Activations::bf16)) ops_.round_bf16(out, n, at<Bf16Block>(gated_bf16_, to.block, 1));
}

ActivationRows Experts::gated(Gated from) const {
  return {at<QuantBlock>(gated_int8_, from.block, 1), at<Bf16Block>(gated_bf16_, from.block, 1),
          at<float>(gated_, from.row, gated_width_), gated_width_};
}

}  // namespace unisono::model
