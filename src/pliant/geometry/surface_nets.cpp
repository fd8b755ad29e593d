// Samples of a grid changing sides until its surface is a manifold; the rule is in nets.py.
#include <algorithm>
#include <vector>

#include "kernel.h"

constexpr float BARELY = 1e-7f;  // what a sample becomes that changes sides

namespace {

using Numbers = std::vector<int64_t>;

class Samples {
   public:
    Samples(const Out<float, 3> &values, const In<bool, 1> &critical)
        : flat_(values.data), shape_{values.shape[0], values.shape[1], values.shape[2]}, critical_(critical),
          done_(values.size(), false) {
        for (int bit = 0; bit < 8; ++bit) steps_[bit] = ((bit >> 2) * shape_[1] + (bit >> 1 & 1)) * shape_[2] + (bit & 1);
    }
    Numbers critical_cells() const;
    Numbers settle(const Numbers &cells);
    Numbers fill(const Numbers &cells);
    void keep_critical(Numbers &cells, const Numbers &changed) const;

   private:
    // One bit for each corner of a cell that lies inside.
    int pattern(int64_t base) const {
        int bits = 0;
        for (int bit = 0; bit < 8; ++bit) bits |= int(flat_[base + steps_[bit]] < 0) << bit;
        return bits;
    }
    bool is_critical(int64_t base) const { return critical_(pattern(base)); }
    int64_t nearest(int64_t base) const;

    float *flat_;
    int64_t shape_[3], steps_[8];  // steps: from a cell's first sample to its corners
    In<bool, 1> critical_;
    std::vector<bool> done_;
};

// First samples of the cells whose pattern is critical, in order.
Numbers Samples::critical_cells() const {
    Numbers found;
    for (int64_t i = 0; i + 1 < shape_[0]; ++i)
        for (int64_t j = 0; j + 1 < shape_[1]; ++j) {
            const int64_t row = (i * shape_[1] + j) * shape_[2];
            const auto across = [&](int64_t k) {  // the four corners at k
                int bits = 0;
                for (int bit = 0; bit < 8; bit += 2) bits |= int(flat_[row + k + steps_[bit]] < 0) << bit;
                return bits;
            };
            int bits = across(0);
            for (int64_t k = 0; k + 1 < shape_[2]; ++k) {
                const int next = across(k + 1);
                if (critical_(bits | next << 1)) found.push_back(row + k);
                bits = next;
            }
        }
    return found;
}

// The sample of a cell that is nearest to the surface and has not changed sides before, or -1.
int64_t Samples::nearest(int64_t base) const {
    int64_t chosen = -1;
    for (const int64_t step : steps_) {
        const int64_t at = base + step;
        if (!done_[at] && (chosen < 0 || std::abs(flat_[at]) < std::abs(flat_[chosen]))) chosen = at;
    }
    return chosen;
}

// Lets one sample of each cell that is still critical change sides; which.
Numbers Samples::settle(const Numbers &cells) {
    Numbers changed;
    for (const int64_t base : cells) {
        const int64_t at = is_critical(base) ? nearest(base) : -1;
        if (at < 0) continue;
        done_[at] = true;
        flat_[at] = flat_[at] < 0 ? BARELY : -BARELY;
        changed.push_back(at);
    }
    return changed;
}

// Puts all samples of the cells that are still critical inside; which.
Numbers Samples::fill(const Numbers &cells) {
    Numbers changed;
    for (const int64_t base : cells) {
        if (!is_critical(base)) continue;
        for (const int64_t step : steps_) {
            flat_[base + step] = std::min(flat_[base + step], -BARELY);
            changed.push_back(base + step);
        }
    }
    return changed;
}

// Of the cells and those that changed samples are corners of, the critical ones, once each and in order.
void Samples::keep_critical(Numbers &cells, const Numbers &changed) const {
    const auto harmless = [&](int64_t base) { return !is_critical(base); };
    cells.erase(std::remove_if(cells.begin(), cells.end(), harmless), cells.end());
    for (const int64_t at : changed)
        for (const int64_t step : steps_) {
            const int64_t base = at - step;
            if (base < 0) continue;
            const int64_t i = base / (shape_[1] * shape_[2]), j = base / shape_[2] % shape_[1], k = base % shape_[2];
            const bool is_cell = i < shape_[0] - 1 && j < shape_[1] - 1 && k < shape_[2] - 1;
            if (is_cell && is_critical(base)) cells.push_back(base);
        }
    std::sort(cells.begin(), cells.end());
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
}

}  // namespace

// Moves samples across the surface, the nearest first and none twice, until the mesh will be manifold. Where that does
// not settle within `patience` rounds, whole cells are filled, which always does.
// critical: (256,) patterns that are not to be.
static void make_well_composed(Out<float, 3> values, In<bool, 1> critical, int64_t patience, int64_t most) {
    Samples samples(values, critical);
    Numbers cells = samples.critical_cells();
    for (int64_t round = 0; round < most && !cells.empty(); ++round)
        samples.keep_critical(cells, round < patience ? samples.settle(cells) : samples.fill(cells));
}
EXPORT(nets_make_well_composed, make_well_composed)
