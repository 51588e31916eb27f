// From panels back to a row's numbers, for rows that are looked up: of an embedding that is the output head as well.
#pragma once

#include "kernels/panel.h"

namespace unisono::kernels {

// Row `row` of w, w.k floats: those that dequantise_row() gives of the tensor w was packed from, bit for bit.
void panel_row(const PanelMatrix& w, int row, float* out);

}  // namespace unisono::kernels
