// What the sources of one instruction set give its table. Only table.cpp and they see it.
#pragma once

#include "kernels/ops.h"
#include "kernels/vec16.h"

namespace unisono::kernels::KERNEL_ISA {

void matmul_int8(const PanelMatrix& w, const QuantBlock* x, int rows, float* y, int64_t ldy, int begin, int end, Upcoming then);
void matmul_bf16(const PanelMatrix& w, const Bf16Block* x, int rows, float* y, int64_t ldy, int begin, int end, Upcoming then);
void matmul_f32(const PanelMatrix& w, const float* x, int64_t ldx, int rows, float* y, int64_t ldy, int begin, int end, Upcoming then);

void quantise(const float* x, int64_t values, QuantBlock* out);
void round_bf16(const float* x, int64_t values, Bf16Block* out);
void rounding(const float* x, int64_t values, const QuantBlock* rounded, float* y);
void rms_norm(const float* x, const float* weight, float eps, float* y, int n);
void add_rows(float* x, const float* y, int n);
float maximum_of(const float* x, int n);
void scale_row(float* x, float factor, int n);
void add_scaled(float* x, const float* y, float factor, int n);
void softmax(float* x, int n);
void gate(GateKind kind, const float* gate, const float* up, float* out, int n);
void rope(float* x, const float* cosines, const float* sines, int dims);

void store_kv(const KvView& kv, int block, int slot, const float* key, const float* value);
void attend(const AttentionItem& item, int begin, int end, bool fold);
void attention_fold(float* running, const float* split, int head_dim);
void attention_finish(const float* state, float* out, int head_dim);

}  // namespace unisono::kernels::KERNEL_ISA
